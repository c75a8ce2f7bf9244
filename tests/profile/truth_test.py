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

    def each_engine(self, program, *options):
        return [(name, self.profile(program, [*options, *more], environment))
                for name, (more, environment) in self.engines.items()]

    def near(self, value, wanted, share, least=0.0):
        self.assertLessEqual(abs(value - wanted), max(share * wanted, least),
                             f"{value:.3f} instead of {wanted:.3f}")

    def test_sums_agree_with_getrusage(self):
        for _, profile in self.each_engine(
                "def work(): burn(2)\nwork()\nprint(sum(used()))\n"):
            wanted = float(profile.output)
            self.near(profile.seconds, wanted, 0.02)
            # The sum of self times is what the header says.
            self.near(sum(int(f["self"]["ns"])
                          for f in profile.answer["functions"]) / 1e9,
                      profile.seconds, 0.0001)
            self.near(profile.of("work", "total"), 2, 0.02)
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
"""):
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
