#include "profile/agent/fault_guard.h"

#include <atomic>
#include <cstddef>

#include <dlfcn.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

// The instructions between each pair of labels may fault. None of them uses the
// stack, so execution can continue at the second label: the word was not read,
// or the walk ends at the frame it has reached.
asm(R"(
.pushsection .text
.balign 16
postflight_guarded_word:
  movq (%rdi), %rax
  movq %rax, (%rsi)
  movl $1, %eax
  ret
postflight_word_fault:
  xorl %eax, %eax
  ret
.balign 16
postflight_guarded_walk:
  movq %r8, %r9
  movl (%rsi), %r8d
  movl 4(%rsi), %r10d
  movl 8(%rsi), %r11d
  movl 12(%rsi), %esi
.balign 16
1:
  testb $7, %dil
  jnz postflight_walk_end
  prefetcht0 -1024(%rdi)
  movq (%rdi,%r8), %rax
  movq %rax, (%rdx)
  movq (%rdi,%r10), %rax
  movq %rax, 8(%rdx)
  movzwl (%rdi,%rsi), %eax
  movq %rax, 16(%rdx)
  movq (%rdi,%r11), %rax
  cmpq %rax, %rdi
  je postflight_walk_end
  addq $24, %rdx
  movq %rax, %rdi
  decq %rcx
  jz postflight_walk_end
  testq %rdi, %rdi
  jnz 1b
postflight_walk_end:
  movq %rdi, (%r9)
  movq %rdx, %rax
  ret
.popsection
)");

extern "C" {
extern const char postflight_word_fault[];  // NOLINT: the names above
extern const char postflight_walk_end[];    // NOLINT
int postflight_guarded_word(std::uint64_t address, std::uint64_t* word);
std::uint64_t* postflight_guarded_walk(std::uint64_t frame,
                                       const postflight::FrameOffsets* offsets,
                                       std::uint64_t* out, std::uint64_t most,
                                       std::uint64_t* rest);
}

namespace postflight {
namespace {

static_assert(offsetof(FrameOffsets, flags) == 12);
static_assert(kFrameWords == 3);

using Action = struct sigaction;
using SetAction = int (*)(int, const Action*, Action*);
using SetHandler = sighandler_t (*)(int, sighandler_t);

// The last is the agent's own.
constexpr int kCount = 4;
constexpr int kFaults = 2;
int guarded_signals[kCount] = {SIGSEGV, SIGBUS, SIGIO, 0};
SignalHandler own_handler = nullptr;
// How many samples pass between checks that our handlers are still installed.
constexpr std::uint32_t kLookEach = 64;

pid_t owner = 0;  // whose memory this is
Action theirs[kCount] = {};
std::atomic<bool> in_place = false;
std::atomic<std::uint32_t> looks = 0;

int real_sigaction(int signal, const Action* action, Action* old) {
  static std::atomic<SetAction> real = nullptr;
  if (real == nullptr)
    real = reinterpret_cast<SetAction>(::dlsym(RTLD_NEXT, "sigaction"));
  return real.load()(signal, action, old);
}

// Index into guarded_signals; -1: not guarded.
int guarded_index(int signal) {
  if (owner != 0)
    for (int i = 0; i < kCount; ++i)
      if (guarded_signals[i] == signal)
        return owner != ::getpid() ? -1 : i;
  return -1;
}

void handle_io(int signal, siginfo_t* info, void* context) {
  // By default SIGIO would kill the program, but this one is about the agent's
  // own signals.
  const Action& kept = theirs[guarded_index(signal)];
  if (kept.sa_handler == SIG_DFL && info->si_code == SI_KERNEL)
    return;
  pass_on(signal, info, context);
}

void handle_fault(int signal, siginfo_t* info, void* context) {
  greg_t& pc = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP];
  const auto at = [](auto* code) { return reinterpret_cast<greg_t>(code); };
  if (pc >= at(postflight_guarded_word) && pc < at(postflight_word_fault))
    pc = at(postflight_word_fault);
  else if (pc >= at(postflight_guarded_walk) && pc < at(postflight_walk_end))
    pc = at(postflight_walk_end);
  else
    pass_on(signal, info, context);
}

// With the mask and flags of the program's handler, so that it runs as it would
// without the agent.
int install(int index) {
  Action ours = theirs[index];
  const bool handled =
      (ours.sa_flags & SA_SIGINFO) != 0 ||
      (ours.sa_handler != SIG_DFL && ours.sa_handler != SIG_IGN);
  ours.sa_sigaction = index < kFaults    ? handle_fault
                      : index == kFaults ? handle_io
                                         : own_handler;
  if (!handled || index == kCount - 1)
    ours.sa_flags = SA_ONSTACK | SA_RESTART;
  if (index == kCount - 1) {
    ::sigfillset(&ours.sa_mask);
    // A fault whose signal is blocked would kill the program.
    ::sigdelset(&ours.sa_mask, SIGSEGV);
    ::sigdelset(&ours.sa_mask, SIGBUS);
  }
  ours.sa_flags |= SA_SIGINFO;
  ours.sa_flags &= ~static_cast<int>(SA_RESETHAND);
  return real_sigaction(guarded_signals[index], &ours, nullptr);
}

bool still_installed() {
  for (int i = 0; i < kFaults; ++i) {
    Action now = {};
    if (real_sigaction(guarded_signals[i], nullptr, &now) != 0 ||
        now.sa_sigaction != handle_fault)
      return false;
  }
  return true;
}

}  // namespace

void pass_on(int signal, siginfo_t* info, void* context) {
  int index = 0;
  while (index < kCount - 1 && guarded_signals[index] != signal)
    ++index;
  Action& kept = theirs[index];
  const Action action = kept;
  if ((action.sa_flags & static_cast<int>(SA_RESETHAND)) != 0)
    kept = {};
  const bool sent = info->si_code <= 0;  // by a process, not by a fault
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(signal, info, context);
  } else if (action.sa_handler == SIG_DFL ||
             (action.sa_handler == SIG_IGN && !sent &&
              (index < kFaults || signal == SIGTRAP))) {
    const Action standard = {};
    real_sigaction(signal, &standard, nullptr);
    // A fault recurs as soon as we return; a signal that was sent does not, and
    // neither does a breakpoint.
    if (sent || signal == SIGTRAP)
      ::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), ::gettid(), signal, info);
  } else if (action.sa_handler != SIG_IGN) {
    action.sa_handler(signal);
  }
}

void set_up_fault_guard(int signal, SignalHandler handler) {
  guarded_signals[kCount - 1] = signal;
  own_handler = handler;
  for (int i = 0; i < kCount; ++i)
    if (real_sigaction(guarded_signals[i], nullptr, &theirs[i]) != 0)
      return;
  owner = ::getpid();
  in_place = install(0) == 0 && install(1) == 0;
  // Without its own handler the agent's signal would kill the program.
  install(kFaults);
  install(kCount - 1);
}

void hand_over_ignored_signals() {
  for (int i = 0; owner != 0 && i < kCount; ++i)
    if (theirs[i].sa_handler == SIG_IGN)
      real_sigaction(guarded_signals[i], &theirs[i], nullptr);
}

void take_back_ignored_signals() {
  for (int i = 0; owner != 0 && i < kCount; ++i)
    if (theirs[i].sa_handler == SIG_IGN)
      install(i);
}

void take_over_fault_guard() {
  if (owner != 0)
    owner = ::getpid();
}

bool fault_guard_holds(const sigset_t& blocked) {
  // A fault whose signal is blocked kills the process.
  if (::sigismember(&blocked, SIGSEGV) != 0 ||
      ::sigismember(&blocked, SIGBUS) != 0)
    return false;
  if (looks.fetch_add(1, std::memory_order_relaxed) % kLookEach == 0)
    in_place = still_installed();
  return in_place.load(std::memory_order_relaxed);
}

bool guarded_word(std::uint64_t address, std::uint64_t& word) {
  return postflight_guarded_word(address, &word) != 0;
}

std::uint64_t* guarded_walk(std::uint64_t frame, const FrameOffsets& offsets,
                            std::uint64_t* out, std::uint64_t most,
                            std::uint64_t& rest) {
  return postflight_guarded_walk(frame, &offsets, out, most, &rest);
}

bool checked_copy(void* to, std::uint64_t from, std::uint64_t size) {
  const iovec here = {to, size};
  const iovec there = {reinterpret_cast<void*>(from), size};
  return ::syscall(SYS_process_vm_readv, ::getpid(), &here, 1, &there, 1, 0) ==
         static_cast<long>(size);
}

}  // namespace postflight

// Replaces the C library's function.
extern "C" [[gnu::visibility("default")]] int sigaction(
    int signal, const struct sigaction* action, struct sigaction* old) {
  using namespace postflight;
  const int index = guarded_index(signal);
  if (index < 0)
    return real_sigaction(signal, action, old);
  const Action before = theirs[index];
  int result = 0;
  if (action != nullptr) {
    theirs[index] = *action;
    result = install(index);
  }
  if (old != nullptr)
    *old = before;
  return result;
}

extern "C" [[gnu::visibility("default")]] sighandler_t signal(
    int number, sighandler_t handler) {
  using namespace postflight;
  if (guarded_index(number) < 0) {
    static std::atomic<SetHandler> real = nullptr;
    if (real == nullptr)
      real = reinterpret_cast<SetHandler>(::dlsym(RTLD_NEXT, "signal"));
    return real.load()(number, handler);
  }
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaddset(&action.sa_mask, number);
  struct sigaction old;
  return ::sigaction(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}
