"""Programs run under the profiler as they do alone.

unnoticed_test.py <postflight>

Each program is run with and without the profiler; output and exit status must
be the same.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PYTHON = "/usr/bin/python3"


class Unnoticed(unittest.TestCase):
    postflight = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.log = os.path.join(self.folder, "log.pflog")

    def run_both(self, *command, environment=None):
        def run(front):
            done = subprocess.run(
                [*front, *command], env={**os.environ, **(environment or {})},
                capture_output=True, text=True, timeout=60, check=False,
                cwd=self.folder)
            return done.stdout, done.stderr, done.returncode
        alone = run([])
        profiled = run([self.postflight, "profile", "--quiet", "--force",
                        "--rate", "999", "-o", self.log, "--"])
        return alone, profiled

    def same(self, *command, **options):
        alone, profiled = self.run_both(*command, **options)
        # The profiler adds one line if the program fails.
        error = "".join(line for line in profiled[1].splitlines(True)
                        if not line.startswith("postflight: "))
        self.assertEqual((profiled[0], error, profiled[2]), alone)
        return alone

    def same_program(self, text):
        """Of a Python program, under all ways to sample from inside."""
        path = os.path.join(self.folder, "program.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        for environment in ({}, {"POSTFLIGHT_NO_TRAP": "1"},
                            {"POSTFLIGHT_NO_PERF": "1"}):
            with self.subTest(**environment):
                result = self.same(PYTHON, path, environment=environment)
                self.assertEqual(result[1:], ("", 0))

    def answer(self):
        return json.loads(subprocess.run(
            [self.postflight, "profile", "report", "--json", self.log],
            capture_output=True, check=True).stdout)

    def test_starts_with_closed_descriptors(self):
        for closed in "<&-", ">&-", "<&- >&-", "<&- >&- 2>&-":
            self.same("sh", "-c", f"exec {PYTHON} -c 'print(1)' {closed}")

    def test_holds_no_descriptors(self):
        self.same_program("""
import os, threading
def show(where):
    print(where, sorted(os.listdir("/proc/self/fd")), flush=True)
show("main")
for i in range(3_000_000): pass
thread = threading.Thread(target=show, args=("thread",))
thread.start()
thread.join()
if os.fork() == 0:
    show("fork")
    os._exit(0)
os.wait()
""")

    def test_leaves_files_alone_that_take_the_place_of_closed_ones(self):
        self.same_program("""
import os, tempfile, threading
def work():
    for i in range(1_000_000): pass
os.closerange(3, 256)
files = [os.open(tempfile.gettempdir(), os.O_TMPFILE | os.O_RDWR)
         for _ in range(20)]
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
for _ in range(3):
    if os.fork() == 0:
        work()
        os._exit(0)
    os.wait()
work()
print([(os.fstat(file).st_size, os.write(file, b"x")) for file in files])
""")

    def test_hides_its_signal(self):
        self.same_program("""
import os, select, signal, subprocess, sys, threading
everything = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP,
                                       signal.SIGCHLD}
def work():
    for i in range(2_000_000): pass
print([signal.getsignal(s) for s in sorted(everything)][-5:])
# Handles all.
got = []
for s in everything:
    if s >= signal.SIGRTMIN or s == signal.SIGTRAP:
        signal.signal(s, lambda number, frame: got.append(number))
work()
print(got)
for s in 5, 34, 40, 62, 63, 64:
    os.kill(os.getpid(), s)
print(got)
# Blocks and waits for all.
print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, everything)))
print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
work()
print(signal.sigtimedwait(everything, 0.01))
os.kill(os.getpid(), 63)
print(signal.sigtimedwait([63], 1).si_signo)
threading.Thread(target=work).start()
work()
print(sorted(signal.sigpending()))
signal.pthread_sigmask(signal.SIG_SETMASK, [])
for s in everything:
    if s >= signal.SIGRTMIN:
        signal.signal(s, signal.SIG_DFL)
# Without the C library's own, 32 and 33.
for default in "SigIgn", "SigCgt", "SigBlk":
    line = subprocess.run(["grep", default, "/proc/self/status"],
                          capture_output=True, text=True).stdout
    print(default, hex(int(line.split()[1], 16) & ~(3 << 31)))
""")

    def test_passes_foreign_signals_on(self):
        # By default one that nobody handles ends the program.
        for number in 5, 40, 62, 63, 64, 29:
            self.same(PYTHON, "-c",
                      f"import os; os.kill(os.getpid(), {number})")

    def test_leaves_breakpoints_alone(self):
        breakpoint = '''
import ctypes, mmap, signal
def stop():
    code = mmap.mmap(-1, 4096, prot=7)
    code.write(bytes([0xcc, 0xc3]))
    ctypes.CFUNCTYPE(None)(ctypes.addressof(
        ctypes.c_char.from_buffer(code)))()
'''
        for before in ("", "signal.signal(signal.SIGTRAP, signal.SIG_IGN)",
                       "signal.pthread_sigmask(signal.SIG_BLOCK, [5])"):
            text = f"{breakpoint}\n{before}\nstop()"
            self.assertEqual(self.same(PYTHON, "-c", text), ("", "", -5))
        self.same_program(breakpoint + """
signal.signal(signal.SIGTRAP, lambda number, frame: print("stopped"))
for i in range(1_000_000): pass
stop()
print(signal.getsignal(signal.SIGTRAP) is not None)
""")

    def test_passes_the_exit_status_on(self):
        self.same("sh", "-c", "exit 3")
        self.same(PYTHON, "-c", "raise SystemExit(77)")

    def test_does_not_wait_for_readers_of_a_fifo(self):
        fifo = os.path.join(self.folder, "fifo")
        os.mkfifo(fifo)
        ran = os.path.join(self.folder, "ran")
        for options in [], ["--force"]:
            done = subprocess.run(
                [self.postflight, "profile", *options, "-o", fifo, "--",
                 "touch", ran], capture_output=True, text=True, timeout=30,
                check=False)
            self.assertIn("a FIFO", done.stderr)
            self.assertEqual(done.returncode, 2)
            self.assertFalse(os.path.exists(ran))

    def test_says_nothing_in_programs_that_outlive_it(self):
        folder = self.folder
        text = f"""
import os, subprocess, time
if os.fork() == 0:
    os.setsid()
    while not os.path.exists({folder + "/over"!r}): time.sleep(0.01)
    for command in ["/bin/true"], ["sh", "-c", "/bin/true"]:
        with open({folder + "/stderr"!r}, "a") as file:
            subprocess.run(command, stderr=file)
    os.system("/bin/true 2>>{folder}/stderr")
    os.posix_spawn("/bin/true", ["true"], os.environ, file_actions=[
        (os.POSIX_SPAWN_OPEN, 2, {folder + "/stderr"!r},
         os.O_WRONLY | os.O_APPEND, 0)])
    os.wait()
    os.rename({folder + "/stderr"!r}, {folder + "/done"!r})
    os._exit(0)
"""
        subprocess.run([self.postflight, "profile", "--quiet", "-o", self.log,
                        "--", PYTHON, "-c", text], check=True, timeout=60,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(os.path.join(folder, "over"), "w"):
            pass
        done = os.path.join(folder, "done")
        for _ in range(3000):
            if os.path.exists(done):
                break
            subprocess.run(["sleep", "0.01"], check=True)
        with open(done, encoding="utf-8") as file:
            self.assertEqual(file.read(), "")

    @unittest.skipUnless(os.geteuid() == 0, "only root may change its user")
    def test_says_nothing_to_other_users(self):
        self.same("setpriv", "--reuid", "65534", "--clear-groups", "/bin/true")
        self.same(PYTHON, "-c", "import os; os.setuid(65534); "
                  "os.execv('/bin/true', ['true'])")

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"),
                         "only root may make PID namespaces")
    def test_looks_only_at_what_was_launched(self):
        path = os.path.join(self.folder, "work.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write("import time\n"
                       "def work():\n"
                       "    while time.process_time() < 1: pass\n"
                       "work()\n")
        self.same("unshare", "-pf", "--mount-proc", PYTHON, path)
        answer = self.answer()
        work, = [function for function in answer["functions"]
                 if function["name"] == "work"]
        self.assertGreater(int(work["total"]["ns"]), 0.9e9)
        for thread in answer["threads"]:
            self.assertRegex(thread["command"], "unshare|work.py|postflight")


if __name__ == "__main__":
    Unnoticed.postflight = os.path.abspath(sys.argv.pop(1))
    unittest.main()
