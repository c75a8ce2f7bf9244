"""Profiles a real torch.compile through each door: `postflight profile --`, our
profiler class in torch's hook, ours in place of torch's class, and `strobeclient`.

    PYTHONPATH=python python3 tests/torch/compiling.py PROGRAM [REPORT]

PROGRAM is postflight; with REPORT, the text report of the first one is kept in
that file. Needs a torch with torch._strobelight (2.4 and later). Exit 1 if a
profile lacks what was compiled.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap

try:
    import torch
    from torch._strobelight import compile_time_profiler  # noqa: F401
except ImportError as error:
    print(f"SKIPPED    a torch with torch._strobelight: {error}")
    sys.exit(0)

ROOT = pathlib.Path(__file__).resolve().parents[2]
failed = 0

# Compiles two functions, one of them twice, and one on another thread.
TRAIN = textwrap.dedent("""
    import threading
    import torch

    def forward(x, w):
        for _ in range(40):
            x = torch.tanh(x @ w) + x.sin()
        return x.sum()

    def loss(x):
        for _ in range(40):
            x = x.cos() * x.exp().clamp(-3, 3)
        return x.mean()

    def run(function, *arguments):
        torch.compile(function, backend="aot_eager", dynamic=False)(*arguments)

    run(forward, torch.rand(8, 8, requires_grad=True), torch.rand(8, 8))
    run(loss, torch.rand(16))
    run(loss, torch.rand(17))
    other = threading.Thread(target=run, args=(lambda x: (x * 2).sum(),
                                               torch.rand(4)))
    other.start()
    other.join()
    print("trained", flush=True)
""")


def check(what, right, why=""):
    global failed
    failed += not right
    print(f"{'RIGHT' if right else 'DIFFERENT':<9}  {what}"
          f"{'' if right else ': ' + why}")


def run(command, folder, **variables):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(
        filter(None, (str(ROOT / "python"), os.environ.get("PYTHONPATH")))),
        **variables}
    return subprocess.run([str(word) for word in command], cwd=folder, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=environment, timeout=900)


def phases_of(program, file, folder):
    done = run([program, "profile", "report", "--json", file], folder)
    return json.loads(done.stdout)["phases"] if done.stdout else []


def launched(program, script, folder, keep):
    file = os.path.join(folder, "launched.pflog")
    done = run([program, "profile", "--output", file, "--rate", "1ms", "--",
                sys.executable, script], folder)
    names = {phase["name"] for phase in phases_of(program, file, folder)}
    check("launched: the program ran", "trained" in done.stdout, done.stderr)
    check("launched: no talk of URLs",
          "URL shortening" not in done.stdout + done.stderr, done.stderr)
    check("launched: the functions have their names",
          any("forward" in name for name in names)
          and any("loss" in name for name in names), str(sorted(names)))
    report = run([program, "profile", "report", file], folder).stdout
    if keep:
        pathlib.Path(keep).write_text(report)
    bad = os.path.join(folder, "bad.pflog")
    done = run([program, "profile", "--output", bad, "--", sys.executable,
                script], folder, COMPILE_STROBELIGHT_FRAME_FILTER="(")
    check("launched: a bad filter is told and nothing else",
          "trained" in done.stdout and "FRAME_FILTER" in done.stderr,
          done.stderr)


def in_code(program, script, folder, how, lines):
    file = os.path.join(folder, f"{how}.pflog")
    code = (f"import sys; sys.argv = ['train.py']\n{lines.format(file=file)}\n"
            f"exec(compile(open({os.fspath(script)!r}).read(), 'train.py', "
            "'exec'))\nstop()\n")
    done = run([sys.executable, "-c", code], folder,
               POSTFLIGHT_PROGRAM=os.fspath(program))
    check(f"{how}: the program ran", "trained" in done.stdout, done.stderr)
    names = {phase["name"] for phase in phases_of(program, file, folder)}
    check(f"{how}: compile_inner was sampled",
          any("compile_inner" in name for name in names),
          f"{sorted(names)} {done.stderr[-500:]}")


HOOK = """
import functools
from torch._strobelight.compile_time_profiler import (
    StrobelightCompileTimeProfiler as hook)
import postflight
made = []
class Profiler(postflight.PhaseProfiler):
    def __init__(self, **options):
        super().__init__(output={file!r}, **options)
        made.append(self)
hook.enable(Profiler)
def stop():
    made[0].stop()
"""
IN_PLACE = """
import functools
import torch._strobelight.compile_time_profiler as theirs
import torch._utils_internal as users
import postflight
hook = postflight.CompileTimeProfiler
theirs.StrobelightCompileTimeProfiler = hook
users.StrobelightCompileTimeProfiler = hook
hook.enable(functools.partial(postflight.PhaseProfiler, output={file!r}))
def stop():
    hook.disable()
    assert hook.success_profile_count >= 1, vars(hook)
"""


def strobeclient(script, folder):
    place = os.path.join(folder, "strobe")
    os.mkdir(place)
    done = run([sys.executable, script], folder,
               PATH=f"{ROOT / 'contrib/bin'}{os.pathsep}{os.environ['PATH']}",
               POSTFLIGHT_STROBE_OUTPUT=place, TORCH_COMPILE_STROBELIGHT="1")
    check("strobeclient: the program ran", "trained" in done.stdout, done.stderr)
    words = done.stdout + done.stderr
    if "ptrace_scope" in words:
        print("SKIPPED    strobeclient: the kernel forbids a child to read its "
              "parent")
        return
    check("strobeclient: profiles were taken", bool(os.listdir(place)), words)


def main(program, keep):
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "train.py")
        pathlib.Path(script).write_text(TRAIN)
        launched(program, script, folder, keep)
        in_code(program, script, folder, "hook", HOOK)
        in_code(program, script, folder, "in_place", IN_PLACE)
        strobeclient(script, folder)
    return failed > 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: compiling.py PROGRAM [REPORT]")
    sys.exit(main(os.path.abspath(sys.argv[1]),
                  sys.argv[2] if len(sys.argv) > 2 else None))
