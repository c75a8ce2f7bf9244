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
thread that enters them.
"""
import contextlib
import mmap
import os
import struct
import threading

_SLOTS, _DEEPEST, _NAMES_BYTES, _HEADER = 512, 29, 256 << 10, 64
_SLOT_BYTES = 4 * (3 + _DEEPEST)
_NAMES = _HEADER + _SLOTS * _SLOT_BYTES
_word = struct.Struct("<I")


# The file that the agent shares with the profiler, see sample_ring.h.
_ARENA_HEADER, _USES, _MOST_SLOTS, _CLAIMED = 8192, 40, 1024, 2
_SLOT_PHASES, _SLOT_DATA = 4096, 4096 + (_NAMES + _NAMES_BYTES + 4095 & ~4095)


def _in_slot():
    """The table in the slot that this process's agent has claimed."""
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
        return mmap.mmap(file, _NAMES + _NAMES_BYTES,
                         offset=found[1] + _SLOT_PHASES)
    finally:
        os.close(file)


def _in_file(folder):
    path = os.path.join(folder, "%d.phases" % os.getpid())
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # Allocate it now, as writing to a hole fails when the disk is full.
        os.posix_fallocate(file, 0, _NAMES + _NAMES_BYTES)
        return mmap.mmap(file, _NAMES + _NAMES_BYTES)
    finally:
        os.close(file)


class _Table:
    def __init__(self, folder):
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.names = {}
        self.slots = {}
        self.used = 4
        try:
            self.memory = _in_slot()
        except Exception:
            self.memory = None
        if self.memory is None:
            self.memory = _in_file(folder)
        # An existing table is from before this process called exec.
        self.memory[:_NAMES] = bytes(_NAMES)
        struct.pack_into("<III", self.memory, 8, _SLOTS, _NAMES_BYTES, 4)
        self.memory[:8] = b"PFPHASE\x01"

    def offset(self, name, frame_id):
        key = (name, frame_id)
        at = self.names.get(key)
        if at is None:
            parts = [str(part).encode("utf-8", "surrogatepass")[:200]
                     for part in key]
            size = 4 + len(parts[0]) + len(parts[1])
            at = self.used
            if at + size > _NAMES_BYTES:
                at = 0
            else:
                start = _NAMES + at
                struct.pack_into("<HH", self.memory, start, len(parts[0]),
                                 len(parts[1]))
                self.memory[start + 4:start + size] = parts[0] + parts[1]
                self.used = (at + size + 3) & ~3
                _word.pack_into(self.memory, 16, self.used)
            self.names[key] = at
        return at

    def show(self, slot, tid, inside):
        at = _HEADER + slot * _SLOT_BYTES
        version = _word.unpack_from(self.memory, at + 4)[0]
        _word.pack_into(self.memory, at + 4, version + 1 & 0xffffffff)
        _word.pack_into(self.memory, at, tid if inside else 0)
        shown = inside[:_DEEPEST]
        struct.pack_into("<I%dI" % len(shown), self.memory, at + 8, len(shown),
                         *shown)
        _word.pack_into(self.memory, at + 4, version + 2 & 0xffffffff)

    def change(self, tid, name=None, frame_id=""):
        with self.lock:
            slot, inside = self.slots.get(tid) or (None, [])
            if slot is None and name is not None:
                taken = {other for other, _ in self.slots.values()}
                slot = next((free for free in range(_SLOTS)
                             if free not in taken), -1)
                self.slots[tid] = slot, inside
                _word.pack_into(self.memory, 20, max(
                    slot + 1, _word.unpack_from(self.memory, 20)[0]))
            if name is None:
                if inside:
                    inside.pop()
            else:
                inside.append(self.offset(name, frame_id))
            if slot is not None and slot >= 0:
                self.show(slot, tid, inside)
            if not inside:
                self.slots.pop(tid, None)


_table = None
_making = threading.Lock()


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
    global _making
    _making = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _begin(name, frame_id):
    try:
        table = _current()
        if table is not None:
            table.change(threading.get_native_id(), name, frame_id)
        return table
    except Exception:
        return None


def _end(table):
    try:
        if table is not None and table is _table and table.pid == os.getpid():
            table.change(threading.get_native_id())
    except Exception:
        pass


@contextlib.contextmanager
def phase(name, frame_id=""):
    """A phase that lasts until the end of the block; also a decorator."""
    table = _begin(name, frame_id)
    try:
        yield
    finally:
        _end(table)


class TorchProfiler:
    """The profiler class for torch's compile-time profiler hook."""

    hook = None

    def __init__(self, **options):
        self.options = options
        self.profile_result = None

    def profile(self, work, *arguments, **keywords):
        hook = self.hook
        self.profile_result = None
        name, frame = hook.current_phase, hook.get_frame()
        try:
            with phase(name, frame):
                result = work(*arguments, **keywords)
        except BaseException:
            # Otherwise torch would take every later phase for a nested one.
            hook.inside_profile_compile_time = False
            hook.failed_profile_count += 1
            raise
        # torch logs each item on a line of its own.
        self.profile_result = ["phase %s, frame %s" % (name, frame)]
        return result


def enable_torch(hook):
    """Announces the phases of torch.compile."""
    import logging
    logging.getLogger("strobelight_compile_time_profiler").setLevel(
        logging.WARNING)
    TorchProfiler.hook = hook
    hook.enable(TorchProfiler)
)py";

// Python imports a module of this name (sitecustomize) when it starts. This one
// then imports the one that it hides.
constexpr std::string_view kStart = R"py(import os
import sys


class _TorchFinder:
    """Waits for torch's hook to be imported."""

    name = "torch._strobelight.compile_time_profiler"

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        from importlib.machinery import PathFinder
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def run_and_enable(module):
            run(module)
            try:
                import postflight_phase
                postflight_phase.enable_torch(
                    module.StrobelightCompileTimeProfiler)
            except Exception:
                pass

        spec.loader.exec_module = run_and_enable
        return spec


_here = os.path.dirname(os.path.abspath(__file__))
if os.environ.get("POSTFLIGHT_TORCH", "1") != "0":
    sys.meta_path.insert(0, _TorchFinder())
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
  TRY(write_file(folder / "sitecustomize.py", kStart));
  std::string path = folder.native();
  if (const auto before = environment("PYTHONPATH"); before && !before->empty())
    path += ":" + *before;
  return std::vector<std::string>{
      fmt::format("POSTFLIGHT_PHASES={}", folder.native()),
      fmt::format("PYTHONPATH={}", path)};
}

}  // namespace postflight
