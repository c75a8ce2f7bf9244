// The agent: a library that is preloaded into a profiled program (LD_PRELOAD).
//
// Each thread has a perf event that counts its CPU time and sends the thread a
// signal at every interval. The handler runs on that thread, so the frames it
// walks do not change meanwhile. It writes what it sees to a ring in shared
// memory; names are looked up by the engine, from outside.

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "profile/agent/clock.h"
#include "profile/agent/codes.h"
#include "profile/agent/exec_guard.h"
#include "profile/agent/fault_guard.h"
#include "profile/agent/frame_walk.h"
#include "profile/agent/memory.h"
#include "profile/agent/phase_layout.h"
#include "profile/agent/sample_ring.h"

namespace postflight {
namespace {

constexpr std::size_t kFramesBytes =
    sizeof(std::uint64_t) * kWalkWordsPerFrame * kMostRingFrames;
// After this many records a thread sends its whole stack again, in case the
// reader has missed one.
constexpr std::uint32_t kWholeEach = 64;

// All state of the agent; zero until set_up().
struct Agent {
  RingHeader* ring = nullptr;
  std::byte* data = nullptr;
  std::byte* phases = nullptr;
  std::uint64_t interval_ns = 0;
  int signal = 0;
  bool refuse = false;  // for tests: act as if perf events were refused
  pid_t pid = 0;
  bool clocked = false;  // driven by the clock thread, not by perf events
  CreateThread create_thread = nullptr;
  char folder[kMostFolderBytes] = {};
  void* (*thread_state)() = nullptr;  // PyGILState_GetThisThreadState
  pthread_key_t key = 0;
};
Agent agent;

// One for each thread. Initial-exec, so that a handler reaches it without
// allocating.
struct ThreadData {
  int event;  // its descriptor plus one; 0: none
  bool sampled;
  bool in_handler;
  ClockedThread clock;
  std::int32_t tid;
  std::uint32_t phase_slot;
  std::uint64_t stack_end;
  // Space for kMostRingFrames each: the current stack and the previous one.
  std::uint64_t* frames;
  std::uint64_t* last;
  std::uint32_t last_frames;  // 0: the reader does not have it
  std::uint32_t since_whole;
};
[[gnu::tls_model("initial-exec")]] thread_local ThreadData own;

std::uint64_t now_ns() {
  timespec time = {};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

constexpr std::size_t round_up(std::size_t size) {
  return (size + 7) & ~std::size_t{7};
}

void take_sample(const ucontext_t& context) {
  static_assert(kMostRingFrames <= UINT16_MAX);
  const RingLayout& layout = agent.ring->layout;
  const std::uint64_t start = now_ns();
  void* const thread = agent.thread_state();
  // Walk into the thread's own buffer first: the size of the record is known
  // only afterwards, and the thread's stack may be small.
  const std::uint32_t most = layout.most_frames < kMostRingFrames
                                 ? layout.most_frames
                                 : kMostRingFrames;
  FrameWalk walk;
  if (thread != nullptr)
    walk = walk_frames(reinterpret_cast<std::uint64_t>(thread), layout,
                       context.uc_sigmask, own.frames, most);
  std::uint32_t kept =
      shared_frames(own.frames, walk.frames, own.last, own.last_frames);
  if (walk.guarded)
    tell_codes(*agent.ring, agent.data, own.frames, walk.frames - kept);
  if (own.since_whole++ >= kWholeEach) {
    own.since_whole = 0;
    kept = 0;
  }
  const std::size_t frame_bytes = std::size_t{16} * (walk.frames - kept);
  std::uint32_t phases[PhaseTableLayout::kMostPhases + 1] = {};
  const std::uint16_t phase_count =
      copy_phases(agent.phases, own.tid, own.phase_slot, phases);
  const std::size_t phase_bytes = round_up(std::size_t{4} * phase_count);
  const auto sp =
      static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RSP]);
  std::uint64_t stack = 0;
  if (layout.stack_bytes != 0 && own.stack_end > sp)
    stack = own.stack_end - sp < layout.stack_bytes
                ? (own.stack_end - sp) & ~std::uint64_t{7}
                : layout.stack_bytes;
  const std::size_t size = sizeof(RingRecord) + frame_bytes + phase_bytes +
                           (stack == 0 ? 0 : 8 * kRingRegisters + stack);
  std::byte* const place =
      reserve_record(*agent.ring, agent.data, static_cast<std::uint32_t>(size));
  if (place == nullptr) {
    own.last_frames = 0;
    return;
  }
  auto* const record = reinterpret_cast<RingRecord*>(place);
  record->kind = kRecordOfSample;
  record->time_ns = start;
  record->tid = own.tid;
  record->frames = static_cast<std::uint16_t>(walk.frames - kept);
  record->kept = kept;
  record->phases = phase_count;
  record->flags = (walk.torn ? kRecordTorn : 0) | (walk.cut ? kRecordCut : 0);
  record->stack_bytes = static_cast<std::uint32_t>(stack);
  std::byte* to = place + sizeof(RingRecord);
  std::memcpy(to, own.frames, frame_bytes);
  to += frame_bytes;
  std::memcpy(to, phases, phase_bytes);
  to += phase_bytes;
  if (stack != 0) {
    const greg_t* const r = context.uc_mcontext.gregs;
    const greg_t registers[kRingRegisters] = {
        r[REG_RIP], r[REG_RSP], r[REG_RBP], r[REG_RBX],
        r[REG_R12], r[REG_R13], r[REG_R14], r[REG_R15]};
    std::memcpy(to, registers, sizeof(registers));
    std::memcpy(to + sizeof(registers), reinterpret_cast<const void*>(sp),
                stack);
  }
  std::uint64_t* const before = own.last;
  own.last = own.frames;
  own.last_frames = walk.frames;
  own.frames = before;
  record->handler_ns = static_cast<std::uint32_t>(now_ns() - start);
  record->size.store(static_cast<std::uint32_t>(size),
                     std::memory_order_release);
}

void handle(int, siginfo_t*, void* context) {
  const int error = errno;
  if (agent.ring != nullptr && !own.in_handler && own.sampled &&
      agent.ring->layout_ready.load(std::memory_order_acquire) != 0) {
    own.in_handler = true;
    take_sample(*static_cast<const ucontext_t*>(context));
    own.in_handler = false;
  }
  errno = error;
}

// Opens the calling thread's event. Returns an errno, or 0.
int open_event() {
  perf_event_attr attributes = {};
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.size = sizeof(attributes);
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.sample_period = agent.interval_ns;
  attributes.disabled = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.wakeup_events = 1;
  if (agent.refuse)
    return EACCES;
  const int event = static_cast<int>(::syscall(
      SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (event < 0)
    return errno;
  const f_owner_ex owner = {F_OWNER_TID, own.tid};
  if (::fcntl(event, F_SETFL, O_NONBLOCK | O_ASYNC) != 0 ||
      ::fcntl(event, F_SETSIG, agent.signal) != 0 ||
      ::fcntl(event, F_SETOWN_EX, &owner) != 0) {
    const int error = errno;
    ::close(event);
    return error;
  }
  own.event = event + 1;
  ::ioctl(event, PERF_EVENT_IOC_ENABLE, 0);
  return 0;
}

void close_event() {
  if (own.event != 0) {
    ::ioctl(own.event - 1, PERF_EVENT_IOC_DISABLE, 0);
    ::close(own.event - 1);
  }
  own.event = 0;
}

// Starts sampling the calling thread. Returns an errno, or 0.
int begin_thread() {
  own.tid = static_cast<std::int32_t>(::syscall(SYS_gettid));
  own.event = 0;
  own.sampled = false;
  own.in_handler = false;
  own.last_frames = 0;
  pthread_attr_t attributes;
  void* stack = nullptr;
  std::size_t size = 0;
  if (::pthread_getattr_np(::pthread_self(), &attributes) == 0) {
    if (::pthread_attr_getstack(&attributes, &stack, &size) == 0)
      own.stack_end = reinterpret_cast<std::uint64_t>(stack) + size;
    ::pthread_attr_destroy(&attributes);
  }
  if (own.frames == nullptr) {
    void* const room =
        ::mmap(nullptr, 2 * kFramesBytes, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
      return ENOMEM;
    own.frames = static_cast<std::uint64_t*>(room);
    own.last = own.frames + kFramesBytes / sizeof(std::uint64_t);
  }
  // Signals may arrive from here on.
  own.sampled = true;
  const int error = agent.clocked ? add_to_clock(own.clock) : open_event();
  own.sampled = error == 0;
  if (error == 0)
    ::pthread_setspecific(agent.key, &own);
  return error;
}

void end_thread(void*) {
  close_event();
  remove_from_clock(own.clock);
  own.sampled = false;
  if (own.frames != nullptr)
    ::munmap(own.frames < own.last ? own.frames : own.last, 2 * kFramesBytes);
  own.frames = nullptr;
}

// Creates the ring of this process, new or forked, and starts sampling.
void begin_process() {
  std::byte* const memory =
      map_process_file(agent.folder, ".ring", kRingDataOffset + kRingBytes);
  if (memory == nullptr)
    return;
  auto* const ring = reinterpret_cast<RingHeader*>(memory);
  ring->magic = kRingMagic;
  ring->layout_ready.store(0);
  ring->generation.fetch_add(1);
  agent.data = memory + kRingDataOffset;
  agent.phases =
      map_process_file(agent.folder, ".phases", PhaseTableLayout::kBytes);
  agent.ring = ring;
  forget_codes();
  agent.pid = ::getpid();
  agent.clocked = false;
  const int error = begin_thread();
  AgentState state = AgentState::kSampling;
  if (error != 0) {
    agent.clocked = true;
    state = start_clock(agent.create_thread, agent.signal, agent.interval_ns) ==
                        0 &&
                    begin_thread() == 0
                ? AgentState::kClocked
                : AgentState::kRefused;
  }
  ring->error = error;
  ring->state.store(static_cast<std::uint32_t>(state));
}

// A forked child has only the thread that forked, and its parent's event, whose
// signals go to the parent.
void after_fork() {
  if (own.event != 0)
    ::close(own.event - 1);
  own.event = 0;
  forget_clock();
  take_over_fault_guard();
  begin_process();
}

// A real-time signal that is not in use.
int free_signal() {
  for (int signal = SIGRTMAX - 1; signal > SIGRTMIN; --signal) {
    struct sigaction used;
    if (::sigaction(signal, nullptr, &used) == 0 && used.sa_handler == SIG_DFL)
      return signal;
  }
  return 0;
}

std::uint64_t number(const char* text) {
  std::uint64_t value = 0;
  for (; text != nullptr && *text >= '0' && *text <= '9'; ++text)
    value = value * 10 + static_cast<std::uint64_t>(*text - '0');
  return value;
}

[[gnu::constructor]] void set_up() {
  set_up_exec_guard();
  agent.create_thread =
      reinterpret_cast<CreateThread>(::dlsym(RTLD_NEXT, "pthread_create"));
  const char* const folder = std::getenv("POSTFLIGHT_PHASES");
  agent.interval_ns = number(std::getenv("POSTFLIGHT_AGENT_NS"));
  agent.refuse = std::getenv("POSTFLIGHT_NO_PERF") != nullptr;
  if (folder == nullptr || std::strlen(folder) >= kMostFolderBytes ||
      agent.interval_ns == 0)
    return;
  std::memcpy(agent.folder, folder, std::strlen(folder) + 1);
  // Only Python exports this; other programs are left alone.
  *reinterpret_cast<void**>(&agent.thread_state) =
      ::dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
  agent.signal = free_signal();
  if (agent.thread_state == nullptr || agent.signal == 0 ||
      ::pthread_key_create(&agent.key, end_thread) != 0)
    return;
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  // A fault whose signal is blocked would kill the program.
  ::sigfillset(&action.sa_mask);
  ::sigdelset(&action.sa_mask, SIGSEGV);
  ::sigdelset(&action.sa_mask, SIGBUS);
  ::sigaction(agent.signal, &action, nullptr);
  // When too many signals are queued, the kernel sends SIGIO instead, whose
  // default action kills the program.
  struct sigaction used;
  if (::sigaction(SIGIO, nullptr, &used) == 0 && used.sa_handler == SIG_DFL)
    ::signal(SIGIO, SIG_IGN);
  ::pthread_atfork(hold_clock, release_clock, after_fork);
  set_up_fault_guard();
  begin_process();
}

// At exit, give the engine a moment to drain the ring.
[[gnu::destructor]] void tear_down() {
  close_event();
  remove_from_clock(own.clock);
  if (agent.ring == nullptr)
    return;
  for (int i = 0; i < 50 && agent.ring->tail.load() != agent.ring->head.load();
       ++i) {
    const timespec moment = {0, 1'000'000};
    ::nanosleep(&moment, nullptr);
  }
}

struct Start {
  void* (*routine)(void*);
  void* argument;
};

void* run_thread(void* argument) {
  const Start start = *static_cast<Start*>(argument);
  std::free(argument);
  begin_thread();
  return start.routine(start.argument);
}

}  // namespace

// After vfork() the child shares its parent's memory and is not sampled.
bool pause_sampling() {
  if (!own.sampled || ::getpid() != agent.pid)
    return false;
  hold_clock();
  if (own.event != 0)
    ::ioctl(own.event - 1, PERF_EVENT_IOC_DISABLE, 0);
  sigset_t ours;
  sigset_t before;
  ::sigemptyset(&ours);
  ::sigaddset(&ours, agent.signal);
  ::pthread_sigmask(SIG_BLOCK, &ours, &before);
  const timespec at_once = {};
  while (::sigtimedwait(&ours, nullptr, &at_once) == agent.signal) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return true;
}

void resume_sampling() {
  if (own.event != 0)
    ::ioctl(own.event - 1, PERF_EVENT_IOC_ENABLE, 0);
  release_clock();
}

}  // namespace postflight

// Replaces the C library's function: every thread starts with its own event.
extern "C" [[gnu::visibility("default")]] int pthread_create(
    pthread_t* thread, const pthread_attr_t* attributes,
    void* (*routine)(void*), void* argument) {
  using namespace postflight;
  // Other libraries may start threads before set_up() has run.
  if (agent.create_thread == nullptr)
    agent.create_thread =
        reinterpret_cast<CreateThread>(::dlsym(RTLD_NEXT, "pthread_create"));
  if (agent.ring == nullptr ||
      agent.ring->state.load() ==
          static_cast<std::uint32_t>(AgentState::kRefused))
    return agent.create_thread(thread, attributes, routine, argument);
  auto* const start = static_cast<Start*>(std::malloc(sizeof(Start)));
  if (start == nullptr)
    return EAGAIN;
  *start = {routine, argument};
  const int error = agent.create_thread(thread, attributes, run_thread, start);
  if (error != 0)
    std::free(start);
  return error;
}
