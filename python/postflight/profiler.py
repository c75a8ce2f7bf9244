"""Profiling from inside a program: phases, one's own process, torch's hook.

The samples are taken by the program that the package carries, from outside, so
that nothing here slows the job down.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import importlib
import importlib.util
import json
import logging
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional, Set, Tuple, TypeVar

from ._library import Error

# Of the processor that torch's numbers of cycles are meant for.
_CYCLES_PER_SECOND = 3e9

_log = logging.getLogger("strobelight_compile_time_profiler")
_Function = TypeVar("_Function", bound=Callable[..., Any])

# What writes phases to memory that a profiler reads; None: nobody profiles.
_writer: Optional[ModuleType] = None


def _load_writer() -> Optional[ModuleType]:
    """The module of a launched program, or the same one as a part of us."""
    if importlib.util.find_spec("postflight_phase") is not None:
        return importlib.import_module("postflight_phase")
    here = pathlib.Path(__file__).resolve().parent
    path = here / "_phase_module.py"
    if path.exists():
        source = path.read_text()
    else:
        helper = here.parents[1] / "src/profile/phase/helper.cc"
        found = re.search(r'kModule =\s*R"py\((.*?)\)py"',
                          helper.read_text(), re.DOTALL)
        if found is None:
            return None
        source = found.group(1)
    made = ModuleType("postflight_phase")
    exec(compile(source, str(path), "exec"), made.__dict__)
    return made


if os.environ.get("POSTFLIGHT_PHASES"):
    try:
        _writer = _load_writer()
    except Exception:
        # The job is more important than the names of its phases.
        _writer = None


class phase:
    """A named part of the program, as decorator and context manager.

    Phases nest and belong to the thread that enters them. They cost next to
    nothing when nobody profiles.

    >>> with phase("load"):
    ...     pass
    >>> @phase("epoch")
    ... def train():
    ...     return 3
    >>> train()
    3
    """

    __slots__ = ("name", "frame_id", "_table")

    def __init__(self, name: str, frame_id: str = "") -> None:
        self.name = name
        self.frame_id = frame_id
        self._table: Any = None

    def __enter__(self) -> "phase":
        if _writer is not None:
            self._table = _writer._begin(self.name, self.frame_id)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._table is not None:
            _writer._end(self._table)  # type: ignore[union-attr]
            self._table = None

    def __call__(self, function: _Function) -> _Function:
        name, frame_id = self.name, self.frame_id

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with phase(name, frame_id):
                return function(*args, **kwargs)
        return wrapper  # type: ignore[return-value]


def _allow_to_be_read(pid: int) -> None:
    """Where Yama lets only parents read a process, lets this one, too."""
    set_ptracer = 0x59616d61
    try:
        ctypes.CDLL(None).prctl(set_ptracer, ctypes.c_ulong(pid), 0, 0, 0)
    except (OSError, AttributeError):
        pass


class Profiler:
    """Samples this process and its children from another one.

    ``with Profiler("load.pflog"): ...`` takes a profile, which
    ``postflight profile report`` shows, as does ``report()``. ``interval`` is
    the time between samples in seconds.
    """

    def __init__(self, output: Any = None, *, interval: Optional[float] = None,
                 mode: str = "cpu", max_stack: int = 500,
                 duration: Optional[float] = None,
                 children: bool = True) -> None:
        self._asked_for = output
        self.file: Optional[str] = None
        self._options = ["--mode", mode, "--max-stack", str(max_stack)]
        if interval is not None:
            self._options += ["--rate", f"{max(1, round(interval * 1e6))}us"]
        if duration is not None:
            self._options += ["--duration", f"{max(1, round(duration))}s"]
        if not children:
            self._options.append("--no-children")
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._folder: Optional[tempfile.TemporaryDirectory[str]] = None
        self._words: Any = None
        self._pid = 0

    @property
    def running(self) -> bool:
        """Whether samples are taken."""
        return (self._process is not None and self._pid == os.getpid()
                and self._process.poll() is None)

    def start(self) -> "Profiler":
        """Starts sampling, and returns once it has begun."""
        global _writer
        if self._process is not None:
            raise Error("the profiler has been started already")
        from .__main__ import program
        self._pid = os.getpid()
        self.file = _free_name(self._asked_for)
        environment = dict(os.environ)
        if not environment.get("POSTFLIGHT_PHASES"):
            self._folder = tempfile.TemporaryDirectory(prefix="postflight-")
            # Forked children name their phases, too.
            os.environ["POSTFLIGHT_PHASES"] = self._folder.name
            environment["POSTFLIGHT_PHASES"] = self._folder.name
            try:
                _writer = _load_writer()
            except Exception:
                _writer = None
        self._words = tempfile.TemporaryFile()
        read, write = os.pipe()
        try:
            # It waits for the permission to read us.
            self._process = _spawn_waiting(
                read, [program(), "profile", "--pid", str(self._pid),
                       "--output", self.file, "--quiet", *self._options],
                environment, self._words)
            _allow_to_be_read(self._process.pid)
            os.write(write, b"go\n")
        finally:
            os.close(read)
            os.close(write)
        deadline = time.monotonic() + 10
        while not os.path.exists(self.file):
            if self._process.poll() is not None or time.monotonic() > deadline:
                message = self._end()
                raise Error(message or "the profiler did not start", Error.IO)
            time.sleep(0.005)
        atexit.register(self._at_exit)
        return self

    def _end(self) -> str:
        global _writer
        process = self._process
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._process = None
        if self._folder is not None:
            if os.environ.get("POSTFLIGHT_PHASES") == self._folder.name:
                del os.environ["POSTFLIGHT_PHASES"]
            _writer = None
            self._folder.cleanup()
            self._folder = None
        self._words.seek(0)
        lines = self._words.read().decode("utf-8", "replace").splitlines()
        self._words.close()
        return " ".join(line[len("postflight: "):] for line in lines
                        if line.startswith("postflight: "))

    def stop(self) -> None:
        """Ends sampling; the file is complete."""
        if self._process is None or self._pid != os.getpid():
            return
        atexit.unregister(self._at_exit)
        self._end()

    def _at_exit(self) -> None:
        if self._pid == os.getpid():
            self.stop()

    def report(self) -> Dict[str, Any]:
        """The answer of ``postflight profile report --json``."""
        from .__main__ import program
        if self.file is None:
            raise Error("the profiler has not been started")
        done = subprocess.run(
            [program(), "profile", "report", "--json", self.file],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode not in (0, 1):
            raise Error(done.stderr.decode("utf-8", "replace").strip(),
                        Error.IO)
        return json.loads(done.stdout)

    def __enter__(self) -> "Profiler":
        return self.start()

    def __exit__(self, *_: Any) -> None:
        self.stop()


def _spawn_waiting(read: int, command: List[str], environment: Dict[str, str],
                   words: Any) -> "subprocess.Popen[bytes]":
    """Starts a program that first waits for a line from a descriptor."""
    return subprocess.Popen(
        ["/bin/sh", "-c", f'read -r go <&{read}; exec "$@"', "sh", *command],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=words,
        env=environment, start_new_session=True, pass_fds=(read,))


def _rank() -> Optional[int]:
    for name in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"):
        value = os.environ.get(name, "")
        if value.isdecimal():
            return int(value)
    return None


def _free_name(given: Any) -> str:
    """The file asked for, or the first of its kind that is free."""
    if given is None:
        rank = _rank()
        given = "profile.pflog" if rank is None else f"profile-rank{rank}.pflog"
    path = pathlib.Path(os.fspath(given)).absolute()
    number = 1
    while path.exists():
        number += 1
        path = path.with_name(
            f"{pathlib.Path(given).stem}-{number}{pathlib.Path(given).suffix}")
    return str(path)


# ---- torch's compile-time hook ----------------------------------------------


class PhaseProfiler:
    """The profiler class for CompileTimeProfiler and for torch's hook: one
    profile for the whole program, in which each phase has its name."""

    concurrent = True

    def __init__(self, *, sample_each: int = 10_000_000,
                 max_profile_duration_sec: int = 1800, stack_max_len: int = 500,
                 async_stack_max_len: int = 500, run_user_name: str = "",
                 sample_tags: Optional[Set[str]] = None, output: Any = None,
                 **_: Any) -> None:
        self._profiler = Profiler(output,
                                  interval=sample_each / _CYCLES_PER_SECOND,
                                  max_stack=min(stack_max_len, 4096),
                                  duration=max_profile_duration_sec)
        self.run_user_name = run_user_name
        self.sample_tags = set(sample_tags or ())
        self.profile_result: Optional[List[str]] = None
        self._profiler.start()

    @property
    def file(self) -> Optional[str]:
        """Where the samples are."""
        return self._profiler.file

    def profile(self, work: Callable[..., Any], *args: Any,
                **kwargs: Any) -> Any:
        """Runs the work in the phase that the profiler is in."""
        self.profile_result = None
        running = self._profiler.running
        hook = CompileTimeProfiler
        with phase(hook.current_phase or "", hook.get_frame()):
            result = work(*args, **kwargs)
        if running:
            self.profile_result = [f"{self.file}"]
        return result

    def stop(self) -> None:
        """Ends the profile."""
        self._profiler.stop()


def _variable(names: Tuple[str, ...], parse: Callable[[str], Any],
              otherwise: Any) -> Any:
    """The last of some variables that is set; one that is not valid is told
    and ignored."""
    for name in reversed(names):
        value = os.environ.get(name)
        if value is None:
            continue
        try:
            return parse(value)
        except (ValueError, OverflowError, re.error):
            _log.warning("%s='%s' is not valid; using the default", name,
                         value)
    return otherwise


def _number(most: float) -> Callable[[str], int]:
    def parse(text: str) -> int:
        number = float(text)
        if not 1 <= number <= most or number != int(number):
            raise ValueError(text)
        return int(number)
    return parse


def _cycles_of_rate(text: str) -> int:
    """The cycles between samples at a rate as the program takes it: "99" or
    "99Hz" per second, an interval such as "5ms", or "10000000cycles"."""
    found = re.fullmatch(r"([0-9.]+)\s*(Hz|s|ms|us|ns|cycles)?", text)
    if found is None:
        raise ValueError(text)
    number, unit = float(found.group(1)), found.group(2) or "Hz"
    if not number > 0:
        raise ValueError(text)
    if unit == "cycles":
        return max(1, int(number))
    seconds = 1 / number if unit == "Hz" else \
        number * {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit]
    if not 1e-4 <= seconds <= 10:
        raise ValueError(text)
    return max(1, round(seconds * _CYCLES_PER_SECOND))


def _pattern(text: str) -> Optional[str]:
    if not text:
        return None
    re.compile(text)
    return text


def _answered_url(file: Optional[str]) -> str:
    """The URL of the file, or what the user's command makes of it."""
    url = pathlib.Path(file).as_uri() if file else ""
    command = os.environ.get("POSTFLIGHT_URL_COMMAND", "")
    if not command or not url:
        return url
    try:
        done = subprocess.run([*shlex.split(command), url], timeout=10,
                              stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                              check=True)
        return done.stdout.decode().splitlines()[0].strip() or url
    except (OSError, ValueError, IndexError,
            subprocess.SubprocessError) as error:
        _log.warning("POSTFLIGHT_URL_COMMAND failed (%s); the URL is %s", error,
                     url)
        return url


class _CurrentPhase:
    """The phase of the thread that asks."""

    def __get__(self, instance: Any, owner: Any) -> Optional[str]:
        return owner.current()[0]


class CompileTimeProfiler:
    """Profiles phases of compilation, with the contract of torch's
    StrobelightCompileTimeProfiler.

    The work runs exactly once whatever happens to the profiler, its value is
    returned and its exception propagates. Each thread has its own guard, so
    that an exception cannot make every later phase a nested one.
    """

    current_phase = _CurrentPhase()
    success_profile_count = 0
    failed_profile_count = 0
    ignored_profile_runs = 0  # nested ones
    ignored_concurrent_runs = 0
    filtered_profile_runs = 0
    enabled = False
    identifier: Optional[str] = None
    profiler: Any = None
    url = ""
    max_stack_length: int = _variable(
        ("COMPILE_STROBELIGHT_MAX_STACK_LENGTH",
         "POSTFLIGHT_MAX_STACK_LENGTH"), _number(4096), 500)
    max_profile_time: int = _variable(
        ("COMPILE_STROBELIGHT_MAX_PROFILE_TIME", "POSTFLIGHT_MAX_PROFILE_TIME"),
        _number(10**9), 60 * 30)
    sample_each: int = _variable(
        ("POSTFLIGHT_SAMPLE_RATE",), _cycles_of_rate,
        None) or _variable(("COMPILE_STROBELIGHT_SAMPLE_RATE",),
                           _number(1e12), 10_000_000)
    frame_id_filter: Optional[str] = _variable(
        ("COMPILE_STROBELIGHT_FRAME_FILTER", "POSTFLIGHT_FRAME_FILTER"),
        _pattern, None)
    frame_id_exclude: Optional[str] = _variable(
        ("POSTFLIGHT_FRAME_EXCLUDE",), _pattern, None)
    whole_frame_id = os.environ.get("POSTFLIGHT_FRAME_FILTER_FULL") == "1"

    _lock = threading.Lock()
    _running = 0
    _local = threading.local()

    @classmethod
    def _inside(cls) -> List[Tuple[str, str]]:
        if not hasattr(cls._local, "inside"):
            cls._local.inside = []
        return cls._local.inside

    @classmethod
    def current(cls) -> Tuple[Optional[str], str]:
        """The phase and frame that this thread is in."""
        inside = cls._inside()
        return inside[-1] if inside else (None, cls.get_frame())

    @classmethod
    def get_frame(cls) -> str:
        """The id of the frame that torch compiles; "None" outside of one."""
        guards = sys.modules.get("torch._guards")
        try:
            return str(guards.CompileContext  # type: ignore[union-attr]
                       .current_trace_id())
        except Exception:
            return "None"

    @classmethod
    def enable(cls, profiler_class: Any = PhaseProfiler) -> None:
        """Has an effect once. If the profiler cannot be made, that is logged
        and nothing is profiled."""
        with cls._lock:
            if cls.enabled:
                _log.info("compile time strobelight profiling already enabled")
                return
            rank = _rank()
            identifier = "_".join(
                [time.strftime("%Y-%m-%d-%H:%M:%S"), str(os.getpid()),
                 socket.gethostname(), *([] if rank is None
                                         else [f"rank{rank}"])])
            tags = {tag for tag in os.environ.get("POSTFLIGHT_TAGS",
                                                  "").split(",") if tag}
            user = os.environ.get("USER", os.environ.get("USERNAME", ""))
            try:
                profiler = profiler_class(
                    sample_each=cls.sample_each,
                    max_profile_duration_sec=cls.max_profile_time,
                    stack_max_len=cls.max_stack_length,
                    async_stack_max_len=cls.max_stack_length,
                    run_user_name=f"pt2-profiler/{user}",
                    sample_tags={identifier, *tags})
            except Exception as error:
                _log.error("compile time strobelight profiling not enabled: %s",
                           error)
                return
            cls.profiler, cls.identifier = profiler, identifier
            cls.enabled = True
        _log.info("compile time strobelight profiling enabled")
        _log.info("Unique sample tag for this run is: %s", identifier)
        cls.url = _answered_url(getattr(profiler, "file", None))
        _log.info("URL to access the strobelight profile at the end of the "
                  "run: %s", cls.url)

    @classmethod
    def disable(cls) -> None:
        """Ends the profile, after which enable() starts another one."""
        with cls._lock:
            profiler, cls.profiler, cls.enabled = cls.profiler, None, False
        stop = getattr(profiler, "stop", None)
        if stop is not None:
            stop()

    @classmethod
    def _skips(cls, frame: str) -> bool:
        if cls.frame_id_filter is not None:
            match = re.fullmatch if cls.whole_frame_id else re.match
            if match(cls.frame_id_filter, frame) is None:
                return True
        return (cls.frame_id_exclude is not None
                and re.match(cls.frame_id_exclude, frame) is not None)

    @classmethod
    def profile_compile_time(cls, func: Callable[..., Any], phase_name: str,
                             *args: Any, **kwargs: Any) -> Any:
        """Runs func in a phase, profiled if it is the outermost one."""
        profiler = cls.profiler
        if not cls.enabled or profiler is None:
            return func(*args, **kwargs)
        frame = cls.get_frame()
        inside = cls._inside()
        if inside:
            with cls._lock:
                cls.ignored_profile_runs += 1
            _log.info("profile_compile_time is requested for phase: %s, frame "
                      "%s, while already in running phase: %s, frame %s, "
                      "recursive call ignored", phase_name, frame, *inside[-1])
            with phase(phase_name, frame):
                return func(*args, **kwargs)
        if cls._skips(frame):
            with cls._lock:
                cls.filtered_profile_runs += 1
            _log.info("profiling frame %s is skipped due to frame_id_filter %s",
                      frame, cls.frame_id_filter)
            return func(*args, **kwargs)
        with cls._lock:
            alone = cls._running == 0
            if alone or getattr(profiler, "concurrent", False):
                cls._running += 1
            else:
                cls.ignored_concurrent_runs += 1
                profiler = None
        if profiler is None:
            _log.info("profiling frame %s is ignored, another thread is being "
                      "profiled", frame)
            return func(*args, **kwargs)
        _log.info("profiling frame %s", frame)
        inside.append((phase_name, frame))
        work = _Once(func)
        succeeded = False
        try:
            try:
                profiler.profile(work, *args, **kwargs)
                succeeded = profiler.profile_result is not None and work.ran
            except BaseException as error:
                if error is work.error:
                    raise
                _log.warning("no profile of phase %s: %s", phase_name, error)
                if not isinstance(error, Exception):
                    raise
            if not work.ran:
                work(*args, **kwargs)
            if work.error is not None:
                raise work.error
            return work.value
        finally:
            inside.pop()
            with cls._lock:
                cls._running -= 1
                if succeeded and work.error is None:
                    cls.success_profile_count += 1
                else:
                    cls.failed_profile_count += 1
                success, all_runs = cls.success_profile_count, \
                    cls.success_profile_count + cls.failed_profile_count
            _log.info("%d strobelight success runs out of %d non-recursive "
                      "compilation events.", success, all_runs)


def _after_fork() -> None:
    CompileTimeProfiler._lock = threading.Lock()


# Another thread may have held it.
os.register_at_fork(after_in_child=_after_fork)


class _Once:
    """Work that a profiler may run once, and what became of it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.ran = False
        self.value: Any = None
        self.error: Optional[BaseException] = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.ran:
            if self.error is not None:
                raise self.error
            return self.value
        self.ran = True
        try:
            self.value = self._function(*args, **kwargs)
        except BaseException as error:
            self.error = error
            raise
        return self.value
