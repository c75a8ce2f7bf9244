#include "profile/phase/helper.h"

#include <fstream>
#include <string_view>

#include <fmt/format.h>

namespace postflight {
namespace {

// The writer of phase_layout.h, in Python. Whatever goes wrong does not affect
// the program; its phases are not seen then.
constexpr std::string_view kModule =
    R"py("""Tells postflight profile which phase this program is in.

    from postflight_phase import phase
    with phase("load"):
        ...

Without a profiler it costs next to nothing. Phases nest and belong to the
thread, asyncio task or generator that enters them.
"""
import _thread
import contextvars
import os
import struct
import sys

_SLOTS, _DEEPEST, _NAMES_BYTES, _HEADER = 512, 28, 256 << 10, 64
_SLOT_BYTES = 4 * (4 + _DEEPEST)
_NAMES = _HEADER + _SLOTS * _SLOT_BYTES
_word = struct.Struct("<I")


# The file that the agent shares with the profiler, see sample_ring.h.
_ARENA_HEADER, _USES, _MOST_SLOTS, _CLAIMED = 8192, 40, 1024, 2
_SLOT_PHASES, _SLOT_DATA = 4096, 4096 + (_NAMES + _NAMES_BYTES + 4095 & ~4095)


def _in_slot():
    """File and offset of the table in the slot that this process's agent has
    claimed."""
    parts = os.environ.get("POSTFLIGHT_AGENT", "").split(":")
    if len(parts) < 3:
        return None
    try:
        namespace = os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        namespace = 0
    file = os.open(parts[2], os.O_RDWR | os.O_CLOEXEC)
    try:
        header = os.pread(file, _ARENA_HEADER, 0)
        if struct.unpack_from("<Q", header, 8)[0] != int(parts[1]):
            return None
        ring_bytes = struct.unpack_from("<Q", header, 16)[0]
        found = None
        for slot in range(_MOST_SLOTS):
            if _word.unpack_from(header, _USES + 4 * slot)[0] != _CLAIMED:
                continue
            at = _ARENA_HEADER + slot * (_SLOT_DATA + ring_bytes)
            claim, pid, its = struct.unpack(
                "<IiQ", os.pread(file, 16, at + 8))
            if (pid == os.getpid() and its == namespace
                    and (found is None or claim > found[0])):
                found = claim, at
        if found is None:
            return None
        return parts[2], found[1] + _SLOT_PHASES
    finally:
        os.close(file)


def _in_file(folder):
    path = os.path.join(folder, "%d.phases" % os.getpid())
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # Allocate it now, as writing to a hole fails when the disk is full.
        os.posix_fallocate(file, 0, _NAMES + _NAMES_BYTES)
    finally:
        os.close(file)
    return path, 0


class _File:
    """Is open only while it is written to, so that the program never sees its
    descriptor, and cannot close it."""

    def __init__(self, path, start):
        self.path, self.start = path, start

    def __enter__(self):
        self.number = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        return self

    def __exit__(self, *error):
        os.close(self.number)

    def write(self, at, layout, *values):
        self.bytes(at, struct.pack(layout, *values))

    def bytes(self, at, bytes):
        os.pwrite(self.number, bytes, self.start + at)


class _Table:
    def __init__(self, folder):
        self.pid = os.getpid()
        # A signal handler may enter a phase while its thread changes one.
        self.lock = _thread.RLock()
        self.offsets = {}
        self.slots = {}  # of threads that are alive
        self.ended = {}  # of threads that have ended, the oldest first
        self.shown = {}  # of each thread: its phases and its name
        self.versions = []  # of the slots ever used
        self.used = 4
        try:
            place = _in_slot()
        except Exception:
            place = None
        self.place = place or _in_file(folder)
        with _File(*self.place) as file:
            # An existing table is from before this process called exec.
            file.bytes(0, bytes(_NAMES))
            file.write(8, "<III", _SLOTS, _NAMES_BYTES, 4)
            file.bytes(0, b"PFPHASE\x02")

    def offset(self, name, frame_id, owner):
        key = (name, frame_id, owner)
        at = self.offsets.get(key)
        if at is None:
            parts = [str(part).encode("utf-8", "surrogatepass")[:200]
                     for part in (name, frame_id)]
            size = 12 + len(parts[0]) + len(parts[1])
            at = self.used
            if at + size > _NAMES_BYTES:
                at = 0
            else:
                with _File(*self.place) as file:
                    file.bytes(_NAMES + at, struct.pack(
                        "<HHQ", len(parts[0]), len(parts[1]), owner)
                        + parts[0] + parts[1])
                    self.used = (at + size + 3) & ~3
                    file.write(16, "<I", self.used)
            self.offsets[key] = at
        return at

    def slot(self, tid, file):
        slot = self.slots.get(tid)
        if slot is None:
            slot = self.ended.pop(tid, None)
            if slot is None and len(self.ended) > _KEPT:
                slot = self.ended.pop(next(iter(self.ended)))
            if slot is None:
                slot = len(self.versions)
                if slot == _SLOTS:
                    return None
                self.versions.append(0)
                file.write(20, "<I", slot + 1)
            self.slots[tid] = slot
        return slot

    def show(self, tid, inside, name=None):
        """Name 0: none; by default the one that is shown."""
        shown = self.shown.get(tid, ((), 0))
        now = (inside, shown[1] if name is None else name)
        if now == shown:
            return
        with self.lock, _File(*self.place) as file:
            slot = self.slot(tid, file)
            if slot is None:
                return
            at = _HEADER + slot * _SLOT_BYTES
            gone = now == ((), 0)
            self.versions[slot] += 1
            file.write(at, "<II", 0 if gone else tid, self.versions[slot])
            phases = inside[:_DEEPEST]
            file.write(at + 8, "<%dI" % (2 + _DEEPEST), len(phases), *phases,
                       *[0] * (_DEEPEST - len(phases)), now[1])
            self.versions[slot] = self.versions[slot] + 1 & 0xffffffff
            file.write(at + 4, "<I", self.versions[slot])
            if gone:
                self.shown.pop(tid, None)
                self.ended[tid] = self.slots.pop(tid)
            else:
                self.shown[tid] = now

    def end_thread(self, tid):
        """Samples of it may still be on their way, so its slot stays."""
        with self.lock:
            self.shown.pop(tid, None)
            if tid in self.slots:
                self.ended[tid] = self.slots.pop(tid)


_KEPT = 64  # slots of threads that have ended
_table = None
_making = _thread.allocate_lock()
# The phases of a context: (table, thread, offsets of their names).
_inside = contextvars.ContextVar("postflight_phases", default=None)
_watching = False


def _current():
    global _table
    folder = os.environ.get("POSTFLIGHT_PHASES")
    if not folder:
        return None
    # A forked child has a table of its own.
    if _table is None or _table.pid != os.getpid():
        with _making:
            if _table is None or _table.pid != os.getpid():
                _table = _Table(folder)
    return _table


def _after_fork():
    global _making, _table
    _making = _thread.allocate_lock()
    _table = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _phases(table, tid, inside):
    """Of a context, which may be another thread's or from before a fork."""
    if inside is None or inside[0] is not table or inside[1] != tid:
        return ()
    return inside[2]


def _watch_tasks():
    """Shows the phases of each asyncio task while it runs."""
    global _watching
    events = sys.modules.get("asyncio.events")
    if _watching or events is None:
        return
    _watching = True
    run = events.Handle._run

    def _run(self):
        table = _table
        if table is None:
            return run(self)
        tid = _thread.get_native_id()
        table.show(tid, _phases(table, tid, self._context.get(_inside)))
        try:
            return run(self)
        finally:
            table.show(tid, _phases(table, tid, _inside.get()))

    events.Handle._run = _run


_GENERATOR = 0x20 | 0x200  # CO_GENERATOR, CO_ASYNC_GENERATOR


def _owner():
    """The code of the generator that enters a phase, which is left whenever the
    generator is; 0 if it is entered for somebody else."""
    frame = sys._getframe(3)
    name = getattr(sys.modules.get("contextlib"), "__file__", None)
    while frame is not None:
        caller = frame.f_back
        if frame.f_code.co_filename != name and (
                caller is None or caller.f_code.co_filename != name
                or not frame.f_code.co_flags & _GENERATOR):
            break
        frame = caller
    if frame is None or not frame.f_code.co_flags & _GENERATOR:
        return 0
    return id(frame.f_code)


def _begin(name, frame_id, owner=None):
    try:
        table = _current()
        if table is None:
            return None
        tid = _thread.get_native_id()
        with table.lock:
            at = table.offset(name, frame_id,
                              _owner() if owner is None else owner)
            phases = _phases(table, tid, _inside.get()) + (at,)
            _inside.set((table, tid, phases))
            table.show(tid, phases)
        _watch_tasks()
        return table, at
    except Exception:
        return None


def _end(begun):
    try:
        if begun is None or begun[0] is not _table:
            return
        table, at = begun
        tid = _thread.get_native_id()
        with table.lock:
            phases = _phases(table, tid, _inside.get())
            # A generator may end after phases that began in it.
            for i in range(len(phases) - 1, -1, -1):
                if phases[i] == at:
                    phases = phases[:i] + phases[i + 1:]
                    break
            _inside.set((table, tid, phases))
            table.show(tid, phases)
    except Exception:
        pass


class phase:
    """A phase that lasts until the end of the block; also a decorator."""

    def __init__(self, name, frame_id=""):
        self._what = name, frame_id
        self._begun = []

    def __enter__(self):
        self._begun.append(_begin(*self._what))
        return self

    def __exit__(self, *error):
        _end(self._begun.pop())

    def __call__(self, function):
        from functools import wraps
        what = self._what
        code = getattr(function, "__code__", None)
        flags = getattr(code, "co_flags", 0)
        if flags & 0x80:  # CO_COROUTINE
            @wraps(function)
            async def inside(*arguments, **keywords):
                with phase(*what):
                    return await function(*arguments, **keywords)
        elif flags & 0x20:  # CO_GENERATOR
            @wraps(function)
            def inside(*arguments, **keywords):
                begun = _begin(*what, id(code))
                try:
                    return (yield from function(*arguments, **keywords))
                finally:
                    _end(begun)
        else:
            @wraps(function)
            def inside(*arguments, **keywords):
                with phase(*what):
                    return function(*arguments, **keywords)
        return inside


def begin_thread(name):
    """The calling thread, called so, has begun."""
    try:
        table = _current()
        if table is not None:
            with table.lock:
                tid = _thread.get_native_id()
                table.end_thread(tid)
                table.show(tid, (), table.offset(name, "", 0))
    except Exception:
        pass


def end_thread():
    try:
        if _table is not None:
            _table.end_thread(_thread.get_native_id())
    except Exception:
        pass


def _torch_filter(log):
    """Whether a frame is to be announced, by the variable of torch's hook."""
    import re
    given = os.environ.get("COMPILE_STROBELIGHT_FRAME_FILTER")
    if not given:
        return lambda frame: True
    try:
        return re.compile(given).match
    except (re.error, OverflowError, RecursionError) as error:
        log.warning("COMPILE_STROBELIGHT_FRAME_FILTER='%s' is not a valid "
                    "regular expression (%s); every frame is profiled",
                    given, error)
        return lambda frame: True


class _TorchPhases:
    """Announces the phases of torch.compile.

    In place of torch's own function: that has one guard for the process, so it
    leaves out what other threads compile, and the phases inside of a phase; it
    stops working after an exception, and a filter that is not valid is one.
    """

    def __init__(self, hook, passes):
        self.hook = hook
        self.passes = passes
        self.places = {}  # of compiled functions, by frame
        self.local = _thread._local()  # the frame that the thread compiles

    def frame_id(self):
        """As "0/1": the frame, and how often it was compiled before."""
        try:
            if hasattr(self.hook, "get_frame"):
                return str(self.hook.get_frame())
            from torch._guards import CompileContext
            return str(CompileContext.current_compile_id())
        except Exception:
            return ""

    def place(self, frame_id, arguments):
        """The function that is compiled, "f (model.py:40)". Its code is given
        to Dynamo's phase; a later one, the backward's, knows the frame only."""
        frame = frame_id.rpartition("/")[0]
        code = arguments[0] if arguments else None
        if hasattr(code, "co_firstlineno"):
            name = getattr(code, "co_qualname", code.co_name)
            self.places[frame] = "%s (%s:%d)" % (
                name.rpartition("<locals>.")[2],
                os.path.basename(code.co_filename), code.co_firstlineno)
        return self.places.get(frame)

    def begin(self, name, frame_id, arguments):
        begun = []
        try:
            if self.passes(frame_id):
                # Inside of a phase of the same frame its function is known.
                inside = getattr(self.local, "frame", None) == frame_id
                begun.append(_begin(name, "" if inside else frame_id, 0))
                place = None if inside else self.place(frame_id, arguments)
                if place is not None:
                    begun.append(_begin(place, "", 0))
        except Exception:
            pass
        return begun

    def profile_compile_time(self, work, phase_name, *arguments, **keywords):
        frame_id = self.frame_id()
        begun = self.begin(phase_name, frame_id, arguments)
        outer = getattr(self.local, "frame", None)
        if begun:
            self.local.frame = frame_id
        try:
            return work(*arguments, **keywords)
        finally:
            self.local.frame = outer
            while begun:
                _end(begun.pop())


def enable_torch(hook):
    import logging
    log = logging.getLogger("strobelight_compile_time_profiler")
    log.setLevel(logging.WARNING)
    phases = _TorchPhases(hook, _torch_filter(log))
    hook.profile_compile_time = phases.profile_compile_time
    hook.enabled = True
)py";

// Python imports a module of this name (sitecustomize) when it starts. This one
// then imports the one that it hides.
constexpr std::string_view kSite = R"py(import os
import sys


def _watch_torch(module):
    import postflight_phase
    postflight_phase.enable_torch(module.StrobelightCompileTimeProfiler)


def _watch_threads(threading):
    """Tells the profiler what Python calls its threads."""
    kind = threading.Thread
    begin, end = kind._set_native_id, kind._delete

    def _set_native_id(self):
        begin(self)
        # Not those of processes, which have names of their own.
        if self._native_id != os.getpid():
            try:
                import postflight_phase
                postflight_phase.begin_thread(self._name)
            except Exception:
                pass

    def _delete(self):
        end(self)
        phases = sys.modules.get("postflight_phase")
        if phases is not None:
            phases.end_thread()

    kind._set_native_id, kind._delete = _set_native_id, _delete


class _Finder:
    """Waits for modules to be imported."""

    def __init__(self, waiting):
        self.waiting = waiting

    def find_spec(self, name, path=None, target=None):
        watch = self.waiting.pop(name, None)
        if watch is None:
            return None
        from importlib.machinery import PathFinder
        if not self.waiting:
            sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def run_and_watch(module):
            run(module)
            try:
                watch(module)
            except Exception:
                pass

        spec.loader.exec_module = run_and_watch
        return spec


_here = os.path.dirname(os.path.abspath(__file__))
_waiting = {"threading": _watch_threads}
if os.environ.get("POSTFLIGHT_TORCH", "1") != "0":
    _waiting["torch._strobelight.compile_time_profiler"] = _watch_torch
if "threading" in sys.modules:
    try:
        _waiting.pop("threading")(sys.modules["threading"])
    except Exception:
        pass
sys.meta_path.insert(0, _Finder(_waiting))
_ours = sys.modules.pop("sitecustomize", None)
_path, sys.path[:] = list(sys.path), [
    place for place in sys.path if os.path.abspath(place) != _here]
try:
    import sitecustomize
except ImportError:
    if _ours is not None:
        sys.modules["sitecustomize"] = _ours
finally:
    sys.path[:] = _path
)py";

Result<> write_file(const std::filesystem::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file)
    return fail_errno(fmt::format("cannot write {}", path.native()));
  return {};
}

}  // namespace

Result<std::vector<std::string>> install_phase_helper(
    const std::filesystem::path& folder, const Environment& environment) {
  TRY(write_file(folder / "postflight_phase.py", kModule));
  TRY(write_file(folder / "sitecustomize.py", kSite));
  std::string path = folder.native();
  if (const auto before = environment("PYTHONPATH"); before && !before->empty())
    path += ":" + *before;
  return std::vector<std::string>{
      fmt::format("POSTFLIGHT_PHASES={}", folder.native()),
      fmt::format("PYTHONPATH={}", path)};
}

}  // namespace postflight
