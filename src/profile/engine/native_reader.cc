#include "profile/engine/native_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <ctime>
#include <string_view>

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/descriptor.h"
#include "profile/agent/sample_ring.h"

namespace postflight {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kFirstCopy = 64 << 10;
// A thread stops when it next runs; on a busy machine it waits for that.
constexpr std::chrono::milliseconds kMostWait{10};
constexpr long kBetweenLooks = 20'000;  // ns

// The last two words of /proc/PID/task/TID/syscall.
std::optional<RegisterValues> waiting_place(pid_t pid, pid_t tid) {
  const Descriptor file(
      ::open(fmt::format("/proc/{}/task/{}/syscall", pid, tid).c_str(),
             O_RDONLY | O_CLOEXEC));
  std::array<char, 512> buffer;
  const ssize_t got = ::read(file.number(), buffer.data(), buffer.size());
  std::string_view text(buffer.data(),
                        got < 0 ? 0 : static_cast<std::size_t>(got));
  std::array<std::uint64_t, 2> words = {};
  while (true) {
    const std::size_t at = text.find("0x");
    if (at == std::string_view::npos)
      break;
    text.remove_prefix(at + 2);
    words[0] = words[1];
    std::from_chars(text.data(), text.data() + text.size(), words[1], 16);
  }
  if (words[0] == 0 || words[1] == 0)
    return std::nullopt;
  RegisterValues values = {};
  values[kReturnAddress] = words[1];
  values[kRsp] = words[0];
  return values;
}

// 0 if it is not known.
pid_t parent_of(pid_t pid) {
  const Descriptor file(
      ::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 512> buffer;
  const ssize_t got = ::read(file.number(), buffer.data(), buffer.size());
  const std::string_view text(buffer.data(),
                              got < 0 ? 0 : static_cast<std::size_t>(got));
  // "PID (name) S PPID ...", where the name may contain anything.
  const std::size_t end = text.rfind(')');
  pid_t parent = 0;
  if (end != std::string_view::npos && end + 4 < text.size())
    std::from_chars(text.data() + end + 4, text.data() + text.size(), parent);
  return parent;
}

void detach(pid_t tid, int signal) {
  ::ptrace(PTRACE_DETACH, tid, nullptr, static_cast<std::uintptr_t>(signal));
}

}  // namespace

NativeReader::NativeReader(pid_t pid, const Memory& memory,
                           NativeModules& modules)
    : pid_(pid),
      is_child_(parent_of(pid) == ::getpid()),
      memory_(memory),
      modules_(modules),
      stack_bytes_(kFirstCopy) {
  forget_program();
}

NativeReader::~NativeReader() {
  constexpr int kMostLooks = 100'000;
  for (int i = 0; i < kMostLooks && !late_.empty(); ++i) {
    let_go();
    const timespec pause = {0, kBetweenLooks};
    ::nanosleep(&pause, nullptr);
  }
}

// `signal` becomes the one that the thread was about to get, or 0.
NativeReader::Stop NativeReader::look(pid_t tid, int& signal) const {
  siginfo_t info = {};
  const auto id = static_cast<id_t>(tid);
  if (::waitid(P_PID, id, &info,
               WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL) != 0)
    return Stop::kGone;
  if (info.si_pid == 0)
    return Stop::kNotYet;
  if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED) {
    // Its parent is not told before its tracer knows; a child's end is left to
    // whoever started it.
    if (!is_child_ || tid != pid_)
      ::waitid(P_PID, id, &info, WEXITED | WNOHANG | __WALL);
    return Stop::kGone;
  }
  ::waitid(P_PID, id, &info, WSTOPPED | WNOHANG | __WALL);
  constexpr int kEventStop = 128;  // PTRACE_EVENT_STOP
  signal = info.si_status >> 8 == kEventStop ? 0 : info.si_status & 0x7f;
  return Stop::kStopped;
}

// As much of a stack as is mapped.
std::vector<std::byte> NativeReader::copy_stack(std::uint64_t bottom) const {
  std::vector<std::byte> bytes(stack_bytes_);
  std::vector<MemoryPiece> pieces;
  for (std::size_t done = 0; done < bytes.size();) {
    const std::size_t size = std::min(kPageBytes - (bottom + done) % kPageBytes,
                                      bytes.size() - done);
    pieces.push_back({bottom + done, std::span(bytes).subspan(done, size)});
    done += size;
  }
  std::size_t filled = 0;
  for (const MemoryPiece& piece : std::span(pieces).first(memory_.read(pieces)))
    filled += piece.to.size();
  bytes.resize(filled);
  return bytes;
}

NativeStack NativeReader::unwind(const RegisterValues& values,
                                 const std::vector<std::byte>& stack) {
  NativeStack native = unwinder_->unwind(values, stack);
  if (native.cut && stack.size() == stack_bytes_)
    stack_bytes_ = std::min<std::size_t>(2 * stack_bytes_, kMostStackBytes);
  return native;
}

std::optional<NativeStack> NativeReader::waiting(pid_t tid) {
  const std::optional<RegisterValues> values = waiting_place(pid_, tid);
  if (!values)
    return std::nullopt;
  return unwind(*values, copy_stack(*(*values)[kRsp]));
}

std::optional<NativeStack> NativeReader::stopped(
    pid_t tid, const std::function<void()>& while_stopped) {
  let_go();
  if (std::ranges::find(late_, tid) != late_.end() ||
      ::ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) != 0)
    return std::nullopt;
  ::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr);
  int signal = 0;
  Stop stop = Stop::kNotYet;
  const auto until = std::chrono::steady_clock::now() + kMostWait;
  while ((stop = look(tid, signal)) == Stop::kNotYet &&
         std::chrono::steady_clock::now() < until) {
    const timespec pause = {0, kBetweenLooks};
    ::nanosleep(&pause, nullptr);
  }
  if (stop == Stop::kNotYet)
    late_.push_back(tid);
  if (stop != Stop::kStopped)
    return std::nullopt;
  user_regs_struct registers = {};
  RegisterValues values = {};
  std::vector<std::byte> stack;
  if (::ptrace(PTRACE_GETREGS, tid, nullptr, &registers) == 0) {
    values[kReturnAddress] = registers.rip;
    values[kRsp] = registers.rsp;
    values[kRbp] = registers.rbp;
    values[kRbx] = registers.rbx;
    values[kR12] = registers.r12;
    values[kR12 + 1] = registers.r13;
    values[kR12 + 2] = registers.r14;
    values[kR12 + 3] = registers.r15;
    stack = copy_stack(registers.rsp);
    while_stopped();
  }
  detach(tid, signal);
  if (!values[kRsp])
    return std::nullopt;
  return unwind(values, stack);
}

// Threads that were interrupted and have stopped since.
void NativeReader::let_go() {
  std::erase_if(late_, [this](pid_t tid) {
    int signal = 0;
    const Stop stop = look(tid, signal);
    if (stop == Stop::kStopped)
      detach(tid, signal);
    return stop != Stop::kNotYet;
  });
}

}  // namespace postflight
