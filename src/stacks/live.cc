#include "stacks/live.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/file.h"
#include "profile/engine/stack_namer.h"
#include "profile/engine/thread_watch.h"
#include "profile/log/profile.h"
#include "profile/native/unwinder.h"
#include "profile/process/identity.h"
#include "profile/process/map.h"
#include "profile/process/memory.h"
#include "profile/python/code_reader.h"
#include "profile/python/stack.h"
#include "stacks/locals.h"

namespace postflight {
namespace {

constexpr int kMostAttempts = 20;
// Of a native stack; those of threads are at most 8 MB, mostly a few kB deep.
constexpr std::size_t kMostStackBytes = 1 << 20;
constexpr std::size_t kPage = 4096;

std::string proc_text(const std::string& path) {
  const Result<MappedFile> file = MappedFile::open(path);
  return file ? std::string(as_text(file->bytes())) : std::string();
}

// The environment that a process was started with.
Environment environment_of(pid_t pid) {
  return [text = proc_text(fmt::format("/proc/{}/environ", pid))](
             const char* name) -> std::optional<std::string> {
    const std::string wanted = std::string(name) + "=";
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\0', at), text.size());
      if (text.compare(at, wanted.size(), wanted) == 0)
        return text.substr(at + wanted.size(), end - at - wanted.size());
      at = end + 1;
    }
    return std::nullopt;
  };
}

// Where a thread waits in the kernel: the last two words of
// /proc/PID/task/TID/syscall, or nothing if it runs.
std::optional<RegisterValues> waiting_place(pid_t pid, pid_t tid) {
  const std::string text =
      proc_text(fmt::format("/proc/{}/task/{}/syscall", pid, tid));
  std::vector<std::uint64_t> words;
  for (std::size_t at = text.find("0x"); at != text.npos;
       at = text.find("0x", at + 2)) {
    std::uint64_t word = 0;
    std::from_chars(text.data() + at + 2, text.data() + text.size(), word, 16);
    words.push_back(word);
  }
  if (words.size() < 2 || words.back() == 0)
    return std::nullopt;
  RegisterValues values = {};
  values[kReturnAddress] = words.back();
  values[kRsp] = words[words.size() - 2];
  return values;
}

// As much of a stack as is mapped.
std::vector<std::byte> copy_stack(const Memory& memory, std::uint64_t bottom) {
  std::vector<std::byte> bytes(kMostStackBytes);
  std::vector<MemoryPiece> pieces;
  std::size_t done = 0;
  while (done < bytes.size()) {
    const std::size_t size =
        std::min(kPage - (bottom + done) % kPage, bytes.size() - done);
    pieces.push_back({bottom + done, std::span(bytes).subspan(done, size)});
    done += size;
  }
  std::size_t filled = 0;
  for (const MemoryPiece& piece : std::span(pieces).first(memory.read(pieces)))
    filled += piece.to.size();
  bytes.resize(filled);
  return bytes;
}

// Python 3.12 and 3.13 run a class's __init__ above a frame of their own.
bool is_cleanup_of_init(const StackFrame& frame) {
  return frame.function == "__init__" && frame.file == "__init__";
}

// Reads one process.
class LiveProcess {
 public:
  LiveProcess(pid_t pid, const LiveStackOptions& options,
              const Context& context,
              const std::optional<PythonRuntime>& python)
      : pid_(pid),
        options_(options),
        memory_(pid),
        unwinder_(pid, modules_),
        python_(python) {
    if (!python_)
      return;
    codes_ = std::make_unique<CodeReader>(memory_, *python_, context.limits);
    for (const PythonThread& thread : python_threads(memory_, *python_))
      states_[thread.tid] = thread.state;
  }

  std::vector<ThreadStack> threads() {
    std::vector<ThreadStack> found;
    for (const pid_t tid : process_threads(pid_)) {
      const auto state = states_.find(tid);
      if (state == states_.end() && !options_.native)
        continue;
      found.push_back(thread(tid, state == states_.end() ? 0 : state->second));
    }
    return found;
  }

 private:
  ThreadStack thread(pid_t tid, std::uint64_t state) {
    ThreadStack thread = {
        .tid = tid, .name = thread_name(pid_, tid), .python = state != 0};
    const ThreadWatch watch(pid_, tid);
    // What was read between two equal counts of turns belongs together.
    for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
      const std::optional<std::uint64_t> turns = watch.turns();
      const bool waits = watch.activity() == ThreadActivity::kWaiting;
      thread.state = waits ? ThreadState::kWaiting : ThreadState::kRunning;
      thread.trouble.clear();
      read(tid, state, waits, thread);
      const bool is_whole = waits ? watch.turns() == turns : !changed_;
      if (is_whole)
        break;
    }
    return thread;
  }

  void read(pid_t tid, std::uint64_t state, bool waits, ThreadStack& thread) {
    changed_ = false;
    RawStack python;
    python.state = StackState::kWhole;
    if (state != 0) {
      PythonStackReader reader(memory_, python_->layout, state,
                               options_.most_frames);
      python = waits ? reader.read_still() : reader.read();
      changed_ = python.state != StackState::kWhole;
      if (python.state == StackState::kUnreadable)
        thread.trouble = "its Python stack could not be read: it kept changing";
      else if (python.state == StackState::kTorn)
        thread.trouble = "it kept changing: only its outer frames are known";
    }
    std::vector<std::uint64_t> native;
    if (options_.native)
      native = native_stack(tid, waits, thread);
    ProfileBuilder builder;
    const std::uint32_t stack =
        merged_stack(python, native, unwinder_, codes_.get(), builder);
    thread.frames = frames_of_stack(builder.profile(), stack);
    if (options_.locals)
      add_locals(python, thread);
    std::erase_if(thread.frames, is_cleanup_of_init);
  }

  // Of the innermost Python frame, and of the innermost one of the user's code.
  void add_locals(const RawStack& python, ThreadStack& thread) const {
    const StackFrame* const inner = python_frame(thread.frames);
    const StackFrame* const own = own_frame(thread.frames);
    auto raw = python.frames.begin();
    for (StackFrame& frame : thread.frames) {
      if (frame.native || raw == python.frames.end())
        continue;
      if (&frame == inner || &frame == own)
        frame.locals = read_locals(memory_, python_->layout, *raw);
      ++raw;
    }
  }

  std::vector<std::uint64_t> native_stack(pid_t tid, bool waits,
                                          ThreadStack& thread) {
    const std::optional<RegisterValues> values =
        waits ? waiting_place(pid_, tid) : std::nullopt;
    if (!values) {
      thread.trouble += thread.trouble.empty() ? "" : "; ";
      thread.trouble += waits ? "no native stack: the kernel does not say "
                                "where it waits (/proc/PID/syscall)"
                              : "no native stack: it runs, and is not stopped";
      return {};
    }
    const std::vector<std::byte> stack = copy_stack(memory_, *(*values)[kRsp]);
    return unwinder_.unwind(*values, stack).frames;
  }

  static std::vector<StackFrame> frames_of_stack(const Profile& profile,
                                                 std::uint32_t stack) {
    std::vector<StackFrame> frames;
    for (; stack != 0; stack = profile.stacks[stack].parent) {
      const ProfileFrame& frame = profile.frames[profile.stacks[stack].frame];
      frames.push_back({.function = profile.texts[frame.name],
                        .file = profile.texts[frame.file],
                        .line = static_cast<std::int32_t>(frame.line),
                        .native = frame.kind == FrameKind::kNative});
    }
    return frames;
  }

  const pid_t pid_;
  const LiveStackOptions& options_;
  ProcessMemory memory_;
  NativeModules modules_;
  NativeUnwinder unwinder_;
  std::optional<PythonRuntime> python_;
  std::unique_ptr<CodeReader> codes_;
  std::map<pid_t, std::uint64_t> states_;
  bool changed_ = false;  // a running thread's stack, while it was read
};

// "2.7" of a process that runs a Python from before 3.7, which has no symbol to
// find it by.
std::string old_python(pid_t pid) {
  const Result<std::vector<Mapping>> mappings = process_mappings(pid);
  if (!mappings)
    return "";
  for (const Mapping& mapping : *mappings) {
    std::string_view name = mapping.path;
    name.remove_prefix(name.rfind('/') + 1);
    if (name.starts_with("lib"))
      name.remove_prefix(3);
    for (const std::string_view old : {"python2.", "python3."}) {
      if (!name.starts_with(old))
        continue;
      const std::size_t end = std::min(
          name.find_first_not_of("0123456789", old.size()), name.size());
      const std::string_view minor = name.substr(old.size(), end - old.size());
      if (minor.size() == 1 && (old[6] == '2' || minor[0] < '7'))
        return fmt::format("{}.{}", old[6], minor);
    }
  }
  return "";
}

}  // namespace

Result<ProcessStacks> read_live_stacks(pid_t pid,
                                       const LiveStackOptions& options,
                                       const Context& context,
                                       PythonLocator& locator) {
  TRY(check_permission(pid, "stacks"));
  const ProcessMemory memory(pid);
  const std::optional<PythonRuntime> python =
      TRY(locator.find(pid, memory).in(fmt::format("process {}", pid)));
  if (const std::string old = python ? "" : old_python(pid);
      !old.empty() && !options.native)
    return fail(ErrorKind::kUnsupported,
                "process {}: Python {} is not supported; --native shows its "
                "native stacks",
                pid, old);
  if (!python && !options.native)
    return fail(ErrorKind::kUnsupported,
                "process {} does not run Python; --native shows its native "
                "stacks",
                pid);
  ProcessStacks process = {.rank = rank_from(environment_of(pid)),
                           .pid = pid,
                           .host = host_name(),
                           .command = command_line(pid)};
  if (python)
    process.python = version_text(python->version);
  process.threads = LiveProcess(pid, options, context, python).threads();
  return process;
}

bool runs_python(pid_t pid, PythonLocator& locator) {
  const ProcessMemory memory(pid);
  const Result<std::optional<PythonRuntime>> found = locator.find(pid, memory);
  // Of a version that is not supported, it should say so.
  return found ? found->has_value() || !old_python(pid).empty()
               : found.error().kind() == ErrorKind::kUnsupported;
}

std::vector<pid_t> python_children(pid_t pid, PythonLocator& locator) {
  std::vector<pid_t> found;
  std::set<pid_t> seen = {pid};
  std::vector<pid_t> next = {pid};
  while (!next.empty()) {
    const pid_t parent = next.back();
    next.pop_back();
    for (const auto& [child, started_by] : process_children(parent)) {
      if (!seen.insert(child).second)
        continue;
      next.push_back(child);
      if (runs_python(child, locator))
        found.push_back(child);
    }
  }
  std::ranges::sort(found);
  return found;
}

std::vector<pid_t> python_processes(PythonLocator& locator) {
  std::vector<pid_t> found;
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc", error);
  for (; !error && entry != std::filesystem::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    pid_t pid = 0;
    std::from_chars(name.data(), name.data() + name.size(), pid);
    struct stat owner;
    if (pid > 0 && pid != ::getpid() &&
        ::stat(entry->path().c_str(), &owner) == 0 &&
        owner.st_uid == ::geteuid() && runs_python(pid, locator))
      found.push_back(pid);
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace postflight
