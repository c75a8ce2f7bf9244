"""Profiles of programs whose CPU time is known.

truth_test.py <postflight>

Each program prints what it has used by getrusage(); the profile must agree, as
a whole and function by function. Only CPU time is compared, which does not
depend on what else the machine does.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PYTHON = "/usr/bin/python3"
# In front of each program: work that takes CPU time in user code only.
PRELUDE = """
import os, resource, sys, threading, time
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        for _ in range(2000): pass
def used(who=resource.RUSAGE_SELF):
    usage = resource.getrusage(who)
    return usage.ru_utime, usage.ru_stime
"""


class Profile:
    def __init__(self, answer, output):
        self.answer = answer
        self.output = output
        self.seconds = int(answer["spent"]["ns"]) / 1e9
        self.system = int(answer["spent"]["system_ns"]) / 1e9
        self.notes = {note["key"]: note["value"] for note in answer["notes"]}
        self.counters = {counter["name"]: int(counter["count"])
                         for counter in answer["counters"]}

    def of(self, name, time="self", file=None):
        return sum(int(function[time]["ns"])
                   for function in self.answer["functions"]
                   if function["name"] == name
                   and (file is None or function["file"].endswith(file))) / 1e9


class Truth(unittest.TestCase):
    postflight = None
    # Ways to sample: options and environment.
    engines = {
        "perf": ([], {}),
        "clock": ([], {"POSTFLIGHT_NO_PERF": "1"}),
        "external": (["--engine", "external"], {}),
    }
    native_engines = {
        "native": (["--native"], {}),
        "native external": (["--native", "--engine", "external"], {}),
    }

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def profile(self, program, options=(), environment=None, command=None,
                status=0):
        path = os.path.join(self.folder.name, "program.py")
        log = os.path.join(self.folder.name, "log.pflog")
        with open(path, "w", encoding="utf-8") as file:
            file.write(PRELUDE + program)
        run = subprocess.run(
            [self.postflight, "profile", "--quiet", "--force", "-o", log, *options, "--",
             *(command or [PYTHON]), path],
            env={**os.environ, **(environment or {})}, capture_output=True,
            text=True, timeout=120, check=False)
        self.assertEqual(run.stderr, "")
        self.assertEqual(run.returncode, status)
        answer = subprocess.run(
            [self.postflight, "profile", "report", "--json", log],
            capture_output=True, check=True)
        return Profile(json.loads(answer.stdout), run.stdout)

    def each_engine(self, program, *options, engines=None):
        return [(name, self.profile(program, [*options, *more], environment))
                for name, (more, environment)
                in (engines or self.engines).items()]

    def near(self, value, wanted, share, least=0.0):
        self.assertLessEqual(abs(value - wanted), max(share * wanted, least),
                             f"{value:.3f} instead of {wanted:.3f}")

    def test_sums_agree_with_getrusage(self):
        for name, profile in self.each_engine(
                "def work(): burn(2)\nwork()\nprint(sum(used()))\n",
                engines={**self.engines, **self.native_engines,
                         "perf, older kernel":
                             ([], {"POSTFLIGHT_NO_TRAP": "1"})}):
            wanted = float(profile.output)
            # From outside, the end after the last sample is not seen; the
            # program counts the clock thread's time as its own.
            self.near(profile.seconds, wanted, 0.02,
                      0.08 if name == "clock" or "external" in name else 0)
            # The sum of self times is what the header says.
            self.near(sum(int(f["self"]["ns"])
                          for f in profile.answer["functions"]) / 1e9,
                      profile.seconds, 0.0001)
            self.near(profile.of("work", "total"), 2, 0.04)
            process, = profile.answer["processes"]
            self.near((int(process["user_ns"]) + int(process["system_ns"]))
                      / 1e9, wanted, 0.02)
            self.near(int(process["sampled_ns"]) / 1e9, profile.seconds, 0.0001)

    def test_counts_time_in_the_kernel(self):
        for _, profile in self.each_engine("""
zero = os.open("/dev/zero", os.O_RDONLY)
buffers = [bytearray(1 << 20) for _ in range(64)]
def in_kernel():
    end = time.thread_time() + 1
    while time.thread_time() < end:
        os.readv(zero, buffers)
def in_user_code():
    burn(0.5)
in_kernel()
in_user_code()
print(*used())
"""):
            user, system = map(float, profile.output.split())
            self.near(profile.seconds, user + system, 0.02, 0.04)
            self.near(profile.of("in_kernel", "total"), 1, 0.08)
            self.near(profile.of("in_user_code", "total"), 0.5, 0.1)
            self.near(profile.system, system, 0.15)

    def test_sees_threads_shorter_than_the_interval(self):
        for name, profile in self.each_engine("""
def brief():
    end = time.thread_time() + 0.002
    while time.thread_time() < end:
        for _ in range(200): pass
for _ in range(600):
    thread = threading.Thread(target=brief)
    thread.start()
    thread.join()
"""):
            # About 120 samples, so a deviation of 9 %.
            if name == "perf":
                self.near(profile.of("brief"), 1.2, 0.4)

    def test_sees_forks_shorter_than_the_interval(self):
        profile = self.profile("""
def brief():
    for _ in range(150_000): pass
for _ in range(200):
    if os.fork() == 0:
        brief()
        os._exit(0)
    os.wait()
print(sum(used(resource.RUSAGE_CHILDREN)))
""")
        wanted = float(profile.output)
        children = profile.of("brief")
        self.assertGreater(children, 0.5 * wanted)
        self.assertLess(children, 1.3 * wanted)

    def test_runs_in_lockstep_with_no_program(self):
        # Of each period, 70 % in one function; the period is that of 99 Hz.
        for _, profile in self.each_engine("""
def spin(end):
    while time.thread_time() < end:
        for _ in range(20): pass
def most(end): spin(end)
def rest(end): spin(end)
end = time.thread_time()
for _ in range(200):
    most(end + 0.007070707)
    rest(end + 0.010101010)
    end += 0.010101010
"""):
            most = profile.of("most", "total")
            rest = profile.of("rest", "total")
            # 200 samples: four deviations are 0.13.
            self.near(most / (most + rest), 0.7, 0, 0.13)

    def test_counts_no_time_in_which_processes_wait_for_a_processor(self):
        processes = 3 * os.cpu_count()
        for _, profile in self.each_engine(f"""
for _ in range({processes}):
    if os.fork() == 0:
        burn(0.5)
        os._exit(0)
for _ in range({processes}):
    os.wait()
print(sum(used()) + sum(used(resource.RUSAGE_CHILDREN)))
""", engines={**self.engines, **self.native_engines}):
            self.near(profile.seconds, float(profile.output), 0.05)

    def test_tells_alike_modules_apart(self):
        for _, profile in self.each_engine("""
sys.dont_write_bytecode = True
folder = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, folder)
for i in range(20):
    with open(os.path.join(folder, "alike_%02d.py" % i), "w") as file:
        file.write("x = 0\\nfor i in range(400_000):\\n    x += i\\n")
for i in range(20):
    __import__("alike_%02d" % i)
    del sys.modules["alike_%02d" % i]
""", "--rate", "999"):
            times = [profile.of("<module>", file="alike_%02d.py" % i)
                     for i in range(20)]
            self.assertGreater(min(times), 0)
            self.assertLess(max(times), 4 * sum(times) / 20)

    def test_counts_phases_of_tasks_and_generators(self):
        # Each work of a task is 0.02 s; the generator's consumer works longer.
        for _, profile in self.each_engine("""
import asyncio
from postflight_phase import phase
async def task(rounds):
    for _ in range(rounds):
        burn(0.02)
        await asyncio.sleep(0)
async def inside(name, rounds):
    with phase(name):
        await task(rounds)
async def both():
    await asyncio.gather(inside("a", 40), inside("b", 20), task(20))
asyncio.run(both())
def generator():
    with phase("gen"):
        for _ in range(10):
            burn(0.02)
            yield
for _ in generator():
    burn(0.06)
@phase("decorated")
async def decorated():
    await task(20)
asyncio.run(decorated())
""", "--rate", "499"):
            phases = {phase["name"]: int(phase["spent"]["ns"]) / 1e9
                      for phase in profile.answer["phases"]}
            for name, wanted in (("a", 0.8), ("b", 0.4), ("gen", 0.2),
                                 ("decorated", 0.4), ("", 1.05)):
                self.near(phases[name], wanted, 0.3)

    def test_shows_compilations_by_function(self):
        # No current torch is at hand, so this is a package with its names and
        # its hook, which takes known time in each part.
        package = os.path.join(self.folder.name, "site-packages", "torch")
        files = {
            "__init__.py": "from torch import _strobelight, _guards\n",
            "_guards.py": """
class CompileContext:
    current = None
    @classmethod
    def current_compile_id(cls): return cls.current
""",
            "_strobelight/__init__.py":
                "from torch._strobelight import compile_time_profiler\n",
            # As of torch 2.6, without get_frame().
            "_strobelight/compile_time_profiler.py": """
class StrobelightCompileTimeProfiler:
    enabled = inside_profile_compile_time = False
    failed_profile_count = 0
    current_phase = profiler = None
    @classmethod
    def enable(cls, kind):
        cls.enabled, cls.profiler = True, kind(sample_each=1)
    @classmethod
    def profile_compile_time(cls, work, name, *arguments, **keywords):
        if not cls.enabled or cls.inside_profile_compile_time:
            return work(*arguments, **keywords)
        cls.inside_profile_compile_time, cls.current_phase = True, name
        result = cls.profiler.profile(work, *arguments, **keywords)
        cls.inside_profile_compile_time = False
        return result
""",
            "_dynamo/__init__.py": "",
            "_dynamo/convert_frame.py": """
import time
from torch import _guards
from torch._functorch import aot_autograd
from torch._strobelight.compile_time_profiler import (
    StrobelightCompileTimeProfiler as Hook)
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
def convert(code, compile_id):
    _guards.CompileContext.current = compile_id
    Hook.profile_compile_time(compile_inner, "compile_inner", code, True)
def compile_inner(code, one_graph):
    burn(0.3)
    aot_autograd.compile()
""",
            "_functorch/__init__.py": "",
            "_functorch/aot_autograd.py": """
import time
from torch._inductor import compile_fx
def compile():
    end = time.thread_time() + 0.2
    while time.thread_time() < end: pass
    compile_fx.compile_fx()
""",
            "_inductor/__init__.py": "",
            "_inductor/compile_fx.py": """
import os, subprocess, time
def compile_fx():
    end = time.thread_time() + 0.1
    while time.thread_time() < end: pass
    subprocess.run([os.environ["COMPILER"], "-c", "import time\\n"
                    "while time.process_time() < 0.3: pass"], check=True)
""",
        }
        for name, text in files.items():
            path = os.path.join(package, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        compiler = os.path.join(self.folder.name, "x86_64-linux-gnu-g++-12")
        os.symlink(PYTHON, compiler)
        self.profile("""
import torch
from torch._dynamo import convert_frame
class Model:
    def forward(self): pass
def step(): pass
convert_frame.convert(Model.forward.__code__, "0/0")
convert_frame.convert(Model.forward.__code__, "0/1")
convert_frame.convert(step.__code__, "1/0")
burn(0.5)
""", ["--rate", "499"], {"PYTHONPATH": os.path.dirname(package),
                         "COMPILER": compiler})
        log = os.path.join(self.folder.name, "log.pflog")
        report = [self.postflight, "profile", "report", log]
        answer = json.loads(subprocess.run(
            [*report, "--json"], capture_output=True, check=True).stdout)
        forward, step, *rest = answer["compilations"]
        # Dynamo may be seen just before it says what it compiles.
        self.assertLess(sum(int(one["ns"]) for one in rest), 0.03e9)
        path = os.path.join(self.folder.name, "program.py")
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        def line(text):
            return next(i for i, one in enumerate(lines, 1) if text in one)
        self.assertEqual(forward["function"], "Model.forward (program.py:%d)"
                         % line("def forward"))
        self.assertEqual(step["function"],
                         "step (program.py:%d)" % line("def step"))
        for one, count in ((forward, 2), (step, 1)):
            for key, wanted in (("dynamo_ns", 0.3), ("aot_ns", 0.2),
                                ("inductor_ns", 0.1)):
                self.near(int(one[key]) / 1e9, count * wanted, 0.1, 0.05)
            self.assertGreater(int(one["compilers_ns"]) / 1e9, count * 0.2)
            self.assertEqual(int(one["compilers"]), count)
        self.assertEqual((forward["recompiles"], step["recompiles"]), (1, 0))
        text = subprocess.run(report, capture_output=True, text=True,
                              check=True).stdout
        self.assertRegex(text.split("\n")[0], "in torch.compile Model.forward")
        self.assertRegex(text, "Model.forward .*  Dynamo .*, AOT autograd .*, "
                         "Inductor .*, 2 compilers .*, 1 recompile\n")

    def test_counts_children_for_the_thread_that_started_them(self):
        for _, profile in self.each_engine("""
import subprocess
from postflight_phase import phase
CHILD = '''
import time
from postflight_phase import phase
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
burn(0.4)
with phase("its own"): burn(0.4)
'''
ready = threading.Event()
over = threading.Event()
def other():
    with phase("other"):
        ready.set()
        over.wait()
threading.Thread(target=other).start()
ready.wait()
with phase("mine"):
    subprocess.run([sys.executable, "-c", CHILD], check=True)
over.set()
""", "--rate", "499"):
            phases = {phase["name"]: int(phase["spent"]["ns"]) / 1e9
                      for phase in profile.answer["phases"]}
            self.near(phases["mine/its own"], 0.4, 0.3)
            self.near(phases["mine"], 0.42, 0.3)
            self.assertLess(phases.get("other", 0), 0.1)

    def test_names_code_of_subinterpreters(self):
        for _, profile in self.each_engine("""
import _xxsubinterpreters
_xxsubinterpreters.run_string(_xxsubinterpreters.create(), '''
import time
def inside():
    end = time.thread_time() + 0.5
    while time.thread_time() < end: pass
inside()
''')
"""):
            self.near(profile.of("inside", "total"), 0.5, 0.15)

    def test_names_the_end_of_the_interpreter_and_its_garbage(self):
        profile = self.profile("""
keep = [[object() for _ in range(100)] for _ in range(60_000)]
import gc
for _ in range(10): gc.collect()
""", ["--rate", "499"])
        self.assertGreater(profile.of("<garbage collection>"), 0.1)
        self.assertGreater(profile.of("<python ends>"), 0.02)

    def test_names_the_slow_function_beside_garbage(self):
        self.profile("""
class Node: pass
def make():
    keep = []
    for i in range(400_000):
        node = Node()
        node.itself = node
        keep.append([node])
    return keep
def slow(): burn(0.4)
keep = make()
slow()
os._exit(0)
""", ["--rate", "499"])
        lines = subprocess.run(
            [self.postflight, "profile", "report",
             os.path.join(self.folder.name, "log.pflog")],
            capture_output=True, text=True, check=True).stdout.split("\n")
        garbage = next(line for line in lines
                       if "  <garbage collection>" in line)
        self.assertRegex(garbage, "mostly in make  program.py")
        # Whether or not it is second to garbage.
        self.assertRegex(lines[0], r" in (make|burn) \(program.py:[0-9]+\)$")

    def test_says_who_holds_the_gil_and_who_runs_libraries(self):
        profile = self.profile("""
import hashlib
def hashes():
    end = time.thread_time() + 0.5
    data = bytes(1 << 20)
    while time.thread_time() < end: hashlib.sha256(data)
hashes()
burn(0.5)
""", ["--rate", "499"])
        def seconds(function, key):
            return sum(int(line[key]) for line in profile.answer["lines"]
                       if line["function"] == function) / 1e9
        self.near(seconds("hashes", "library_ns"), 0.5, 0.2)
        self.near(seconds("hashes", "gil_ns"), 0, 0, 0.1)
        self.near(seconds("burn", "interpreter_ns"), 0.5, 0.3)
        self.near(seconds("burn", "library_ns"), 0, 0, 0.15)

    def test_calls_threads_as_python_does(self):
        profile = self.profile("""
threads = [threading.Thread(target=burn, args=(0.2,), name="loader-%d" % i)
           for i in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""")
        names = {thread["name"] for thread in profile.answer["threads"]}
        self.assertLessEqual({"loader-0", "loader-1", "loader-2"}, names)

    def test_samples_threads_that_block_signals(self):
        profile = self.profile("""
import signal
def blocked():
    every = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
    signal.pthread_sigmask(signal.SIG_BLOCK, every)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == every
    burn(1)
thread = threading.Thread(target=blocked)
thread.start()
thread.join()
""")
        self.near(profile.of("blocked", "total"), 1, 0.1)


if __name__ == "__main__":
    Truth.postflight = os.path.abspath(sys.argv.pop(1))
    unittest.main()
