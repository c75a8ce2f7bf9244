// The agent: a library that is preloaded into a profiled program (LD_PRELOAD).
//
// Each thread has a perf event that counts its CPU time and sends the thread a
// signal at every interval. The handler runs on that thread, so the frames it
// walks do not change meanwhile. It writes what it sees to a ring in shared
// memory; names are looked up by the engine, from outside.
//
// A sample weighs what the CPU clock of its thread has advanced since the
// thread's last sample, so time in the kernel, where no signals are sent, is
// not lost. A thread's first sample comes after a random part of an interval
// and weighs a whole one: threads that live shorter than that are seen in
// proportion to how long they ran. Later periods are random, too, so that no
// program runs in lockstep with them; changing one means opening the event
// again, so each period serves for a number of samples.

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "profile/agent/clock.h"
#include "profile/agent/codes.h"
#include "profile/agent/event.h"
#include "profile/agent/exec_guard.h"
#include "profile/agent/fault_guard.h"
#include "profile/agent/frame_walk.h"
#include "profile/agent/interpreter.h"
#include "profile/agent/memory.h"
#include "profile/agent/phase_layout.h"
#include "profile/agent/sample_ring.h"
#include "profile/agent/settings.h"
#include "profile/agent/signal_mask.h"

namespace postflight {
namespace {

constexpr std::size_t kFramesBytes =
    sizeof(std::uint64_t) * kWalkWordsPerFrame * kMostRingFrames;
constexpr std::size_t kIdentitiesBytes =
    sizeof(std::uint64_t) * kMostRingFrames;
constexpr std::size_t kRoomBytes = 2 * (kFramesBytes + kIdentitiesBytes);
// After this many records a thread sends its whole stack again, in case the
// reader has missed one.
constexpr std::uint32_t kWholeEach = 64;
// How many samples have the same period.
constexpr std::uint32_t kPeriodEach = 32;
// After this many records in a row for which the ring had no space, nobody
// reads it any more.
constexpr std::uint32_t kMostUnread = 2'000;
// What the loader and the kernel take to start a program.
constexpr std::uint64_t kMostStart = 20'000'000;

// An event repeats until it is replaced, which must not be too often.
constexpr std::uint64_t kShortest = 100'000;

// All state of the agent; zero until set_up().
struct Agent {
  Arena arena;
  bool active = false;  // a slot is claimed
  Settings settings;
  int signal = 0;
  pid_t pid = 0;
  bool clocked = false;  // driven by the clock thread, not by perf events
  CreateThread create_thread = nullptr;
  Interpreter interpreter;
  pthread_key_t key = 0;
};
Agent agent;

// One for each thread. Initial-exec, so that a handler reaches it without
// allocating.
struct ThreadData {
  void* event;
  std::uint64_t period_ns;
  std::uint32_t samples_left;  // of this period
  bool sampled;
  bool in_handler;
  ClockedThread clock;
  std::int32_t tid;
  std::uint32_t phase_slot;
  std::uint64_t stack_end;
  // The CPU time that samples stand for. Before the first sample it is what
  // makes that one weigh an interval, and may be negative.
  std::int64_t accounted_ns;
  std::uint64_t system_ns;  // when it was last read
  // Space for kMostRingFrames each: the current stack and the previous one.
  void* room;
  WalkedStack now;
  WalkedStack last;  // a count of 0: the reader does not have it
  std::uint32_t since_whole;
  std::uint32_t unread;
};
[[gnu::tls_model("initial-exec")]] thread_local ThreadData own;

std::uint64_t to_ns(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_usec) * 1'000;
}

std::uint64_t clock_ns(clockid_t clock) {
  timespec time = {};
  ::clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

constexpr std::size_t round_up(std::size_t size) {
  return (size + 7) & ~std::size_t{7};
}

// Fills in what a record says of CPU time, up to `cpu_ns` of this thread.
void account(RingRecord& record, std::uint64_t cpu_ns) {
  const std::int64_t passed =
      static_cast<std::int64_t>(cpu_ns) - own.accounted_ns;
  own.accounted_ns = static_cast<std::int64_t>(cpu_ns);
  record.cpu_ns = cpu_ns;
  record.weight_ns = passed < 0 ? 0 : static_cast<std::uint64_t>(passed);
  record.system_ns = 0;
  // Events send signals when a period ends in user code, so what is beyond one
  // period was in the kernel, or the signal was blocked.
  if (!agent.clocked && record.weight_ns * 2 <= own.period_ns * 3)
    return;
  rusage usage = {};
  ::getrusage(RUSAGE_THREAD, &usage);
  const std::uint64_t system_ns = to_ns(usage.ru_stime);
  const std::uint64_t beyond =
      agent.clocked ? record.weight_ns : record.weight_ns - own.period_ns;
  const std::uint64_t more =
      system_ns > own.system_ns ? system_ns - own.system_ns : 0;
  record.system_ns = more < beyond ? more : beyond;
  own.system_ns += record.system_ns;
}

// Space for a record of a sample, of which the common part is filled in.
RingRecord* new_record(std::size_t size, std::uint64_t cpu_ns) {
  std::byte* const place =
      agent.arena.reserve_record(static_cast<std::uint32_t>(size));
  if (place == nullptr) {
    // Its time is that of the next record.
    own.last.count = 0;
    ++own.unread;
    return nullptr;
  }
  own.unread = 0;
  auto* const record = reinterpret_cast<RingRecord*>(place);
  record->kind = kRecordOfSample;
  record->tid = own.tid;
  account(*record, cpu_ns);
  return record;
}

void take_sample(const ucontext_t& context) {
  static_assert(kMostRingFrames <= UINT16_MAX);
  const RingHeader& ring = *agent.arena.ring();
  const RingLayout& layout = ring.layout;
  const bool ready = ring.layout_ready.load(std::memory_order_acquire) != 0;
  const std::uint64_t start = clock_ns(CLOCK_MONOTONIC);
  const std::uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  // Signals that were queued while they were blocked all come at once.
  if (static_cast<std::int64_t>(cpu_ns) - own.accounted_ns <
      static_cast<std::int64_t>(agent.settings.interval_ns / 4))
    return;
  const bool guarded = fault_guard_holds(context.uc_sigmask);
  void* const thread =
      ready ? agent.interpreter.thread_state(layout, guarded) : nullptr;
  // Walk into the thread's own buffer first: the size of the record is known
  // only afterwards, and the thread's stack may be small.
  const std::uint32_t most = layout.most_frames < kMostRingFrames
                                 ? layout.most_frames
                                 : kMostRingFrames;
  FrameWalk walk;
  if (thread != nullptr)
    walk = walk_frames(reinterpret_cast<std::uint64_t>(thread), layout, guarded,
                       own.now.frames, most);
  own.now.count = walk.frames;
  for (std::uint32_t i = 0; i < walk.frames; ++i)
    own.now.identities[i] =
        guarded ? code_identity(own.now.frames[2 * i], layout) : 0;
  std::uint32_t kept = shared_frames(own.now, own.last);
  if (guarded && walk.frames != kept)
    tell_codes(agent.arena, own.now.frames, own.now.identities,
               walk.frames - kept);
  if (own.since_whole++ >= kWholeEach) {
    own.since_whole = 0;
    kept = 0;
  }
  const std::size_t frame_bytes = std::size_t{16} * (walk.frames - kept);
  std::uint32_t phases[PhaseTableLayout::kMostPhases + 1] = {};
  const std::uint16_t phase_count =
      copy_phases(agent.arena.phases(), own.tid, own.phase_slot, phases);
  const std::size_t phase_bytes = round_up(std::size_t{4} * phase_count);
  const auto sp =
      static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RSP]);
  std::uint64_t stack = 0;
  bool stack_cut = false;
  if (layout.stack_bytes != 0 && own.stack_end > sp) {
    const std::uint64_t all = (own.stack_end - sp) & ~std::uint64_t{7};
    std::uint64_t limit = layout.stack_bytes & ~std::uint32_t{7};
    if (limit > kMostStackBytes)
      limit = kMostStackBytes;
    stack_cut = all > limit;
    stack = stack_cut ? limit : all;
  }
  const std::size_t size = sizeof(RingRecord) + frame_bytes + phase_bytes +
                           (stack == 0 ? 0 : 8 * kRingRegisters + stack);
  RingRecord* const record = new_record(size, cpu_ns);
  if (record == nullptr)
    return;
  record->time_ns = start;
  record->frames = static_cast<std::uint16_t>(walk.frames - kept);
  record->kept = kept;
  record->phases = phase_count;
  record->flags =
      (walk.torn ? kRecordTorn : 0) | (walk.cut ? kRecordCut : 0) |
      (stack_cut ? kRecordStackCut : 0) |
      (ready && thread == nullptr ? kRecordNoState : 0) |
      (ready ? agent.interpreter.flags(thread, layout, guarded) : 0) |
      agent.interpreter.place_flags(
          static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RIP]));
  record->stack_bytes = static_cast<std::uint32_t>(stack);
  auto* to = reinterpret_cast<std::byte*>(record) + sizeof(RingRecord);
  std::memcpy(to, own.now.frames, frame_bytes);
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
  const WalkedStack before = own.last;
  own.last = own.now;
  own.now = before;
  record->handler_ns =
      static_cast<std::uint32_t>(clock_ns(CLOCK_MONOTONIC) - start);
  record->size.store(static_cast<std::uint32_t>(size),
                     std::memory_order_release);
}

// Replaces the thread's event by one with another period.
void change_period(std::uint64_t period_ns) {
  int error = 0;
  void* const event = open_event(period_ns, agent.signal, error);
  own.samples_left = kPeriodEach;
  // Without a new one, the old one goes on.
  if (event == nullptr)
    return;
  close_event(own.event);
  own.event = event;
  own.period_ns = period_ns;
}

void stop_thread() {
  own.sampled = false;
  close_event(own.event);
  own.event = nullptr;
}

bool is_ours(const siginfo_t& info) {
  if (agent.clocked)
    return info.si_code == SI_QUEUE && info.si_value.sival_ptr == &kClockMark;
  return agent.signal == SIGTRAP ? info.si_code == kTrapOfEvent
                                 : info.si_code > 0;
}

void handle(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  if (!is_ours(*info)) {
    if (!keep_signal(*info))
      pass_on(signal, info, context);
  } else if (agent.active && !own.in_handler && own.sampled) {
    own.in_handler = true;
    if (agent.arena.is_over() || own.unread > kMostUnread) {
      stop_thread();
    } else {
      take_sample(*static_cast<const ucontext_t*>(context));
      if (!agent.clocked && own.samples_left-- == 0)
        change_period(random_period(agent.settings.interval_ns));
    }
    own.in_handler = false;
  }
  errno = error;
}

// Starts sampling the calling thread, whose CPU clock was at `from_ns` when
// what is to be sampled began. Returns an errno, or 0.
int begin_thread(std::uint64_t from_ns) {
  own.tid = static_cast<std::int32_t>(::syscall(SYS_gettid));
  own.event = nullptr;
  own.sampled = false;
  own.in_handler = false;
  own.last.count = 0;
  own.unread = 0;
  own.system_ns = 0;
  pthread_attr_t attributes;
  void* stack = nullptr;
  std::size_t size = 0;
  if (agent.arena.ring_bytes() == kNativeRingBytes &&
      ::pthread_getattr_np(::pthread_self(), &attributes) == 0) {
    if (::pthread_attr_getstack(&attributes, &stack, &size) == 0)
      own.stack_end = reinterpret_cast<std::uint64_t>(stack) + size;
    ::pthread_attr_destroy(&attributes);
  }
  if (own.room == nullptr) {
    void* const room =
        ::mmap(nullptr, kRoomBytes, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
      return ENOMEM;
    own.room = room;
    own.now.identities = static_cast<std::uint64_t*>(room);
    own.last.identities = own.now.identities + kMostRingFrames;
    own.now.frames = own.last.identities + kMostRingFrames;
    own.last.frames = own.now.frames + kFramesBytes / sizeof(std::uint64_t);
  }
  // The first sample weighs an interval.
  const std::uint64_t first = random_start(agent.settings.interval_ns);
  const std::uint64_t now = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  own.accounted_ns = static_cast<std::int64_t>(from_ns + first) -
                     static_cast<std::int64_t>(agent.settings.interval_ns);
  const std::uint64_t due = from_ns + first;
  const std::uint64_t left = due > now + kShortest ? due - now : kShortest;
  // Signals may arrive from here on.
  own.period_ns = agent.settings.interval_ns;
  own.samples_left = 0;
  own.sampled = true;
  int error = 0;
  if (agent.clocked)
    error = add_to_clock(own.clock, left);
  else if (agent.settings.refuse_perf)
    error = EACCES;
  else
    own.event = open_event(left, agent.signal, error);
  if (own.event == nullptr && !own.clock.listed) {
    own.sampled = false;
    return error == 0 ? ENOMEM : error;
  }
  ::pthread_setspecific(agent.key, &own);
  return 0;
}

// What has not been sampled when a thread ends: the periods that ended in the
// kernel. It is given to the last stack of the thread.
void account_rest() {
  if (!agent.active || !own.sampled || own.in_handler)
    return;
  const bool before = own.in_handler;
  own.in_handler = true;
  const std::uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  const std::int64_t rest =
      static_cast<std::int64_t>(cpu_ns) - own.accounted_ns;
  const auto period = static_cast<std::int64_t>(own.period_ns);
  // The clock thread is not as precise.
  if (rest >= (agent.clocked ? 2 * period : period)) {
    const auto until =
        static_cast<std::uint64_t>(own.accounted_ns + rest / period * period);
    if (RingRecord* const record = new_record(sizeof(RingRecord), until)) {
      record->time_ns = clock_ns(CLOCK_MONOTONIC);
      record->frames = 0;
      record->phases = 0;
      record->stack_bytes = 0;
      record->kept = own.last.count;
      record->flags = kRecordRest;
      record->handler_ns = 0;
      record->size.store(sizeof(RingRecord), std::memory_order_release);
    }
  }
  own.in_handler = before;
}

void end_thread(void*) {
  account_rest();
  stop_thread();
  remove_from_clock(own.clock);
  if (own.room != nullptr)
    ::munmap(own.room, kRoomBytes);
  own.room = nullptr;
}

// Says how much CPU time the process has used; the engine cannot ask any more
// once it has ended.
void account_process() {
  account_rest();
  RingHeader& ring = *agent.arena.ring();
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  ring.user_ns = to_ns(usage.ru_utime);
  ring.system_ns = to_ns(usage.ru_stime);
  ring.ended.store(1, std::memory_order_release);
}

// Claims a slot for this process, new or forked, and starts sampling. `parent`
// is the slot of the process that it was forked from.
void begin_process(const RingHeader* parent, std::int32_t parent_tid) {
  const std::uint32_t parent_claim = parent == nullptr ? 0 : parent->claim;
  const bool ready = parent != nullptr &&
                     parent->layout_ready.load(std::memory_order_acquire) != 0;
  const RingLayout layout = ready ? parent->layout : RingLayout{};
  agent.active = false;
  if (!agent.arena.claim(parent_claim, parent_tid))
    return;
  RingHeader& ring = *agent.arena.ring();
  ring.layout = layout;
  ring.layout_ready.store(ready ? 1 : 0);
  forget_codes();
  agent.pid = ::getpid();
  agent.clocked = false;
  agent.active = true;
  const std::uint64_t now = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  const std::uint64_t from = parent != nullptr || now < kMostStart ? 0 : now;
  const int error = begin_thread(from);
  AgentState state = AgentState::kSampling;
  if (error != 0) {
    agent.clocked = true;
    state = start_clock(agent.create_thread, agent.signal,
                        agent.settings.interval_ns, ring.clock_tid) == 0 &&
                    begin_thread(from) == 0
                ? AgentState::kClocked
                : AgentState::kRefused;
  }
  ring.error = error;
  ring.state.store(static_cast<std::uint32_t>(state));
  agent.arena.publish();
}

// A forked child has only the thread that forked, and no event: mappings of
// events are not inherited.
void after_fork() {
  own.event = nullptr;
  own.sampled = false;
  own.clock.listed = false;
  forget_clock();
  if (!agent.active)
    return;
  take_over_fault_guard();
  begin_process(agent.arena.ring(), own.tid);
}

bool is_free(int signal) {
  struct sigaction used;
  return ::sigaction(signal, nullptr, &used) == 0 && used.sa_handler == SIG_DFL;
}

// A signal that is not in use: SIGTRAP if events can send it, which costs a
// third less than a real-time signal.
int free_signal() {
  if (!agent.settings.refuse_perf && !agent.settings.refuse_trap &&
      events_trap() && is_free(SIGTRAP))
    return SIGTRAP;
  for (int signal = SIGRTMAX - 1; signal > SIGRTMIN; --signal) {
    if (is_free(signal))
      return signal;
  }
  return 0;
}

[[gnu::constructor]] void set_up() {
  agent.create_thread =
      reinterpret_cast<CreateThread>(::dlsym(RTLD_NEXT, "pthread_create"));
  if (!agent.settings.read())
    return;
  set_up_exec_guard(agent.settings.library);
  // Other programs than Python are left alone, unless native frames are wanted.
  if ((!agent.interpreter.find() && !agent.settings.native) ||
      !agent.arena.open(agent.settings.arena, agent.settings.token))
    return;
  agent.signal = free_signal();
  if (agent.signal == 0 || ::pthread_key_create(&agent.key, end_thread) != 0)
    return;
  ::pthread_atfork(hold_clock, release_clock, after_fork);
  set_up_fault_guard(agent.signal, handle);
  hide_signal(agent.signal);
  begin_process(nullptr, 0);
}

[[gnu::destructor]] void tear_down() {
  end_process();
  stop_thread();
  remove_from_clock(own.clock);
}

struct Start {
  void* (*routine)(void*);
  void* argument;
  bool signal_looks_blocked;
};

void* run_thread(void* argument) {
  const Start start = *static_cast<Start*>(argument);
  std::free(argument);
  set_signal_looks_blocked(start.signal_looks_blocked);
  begin_thread(0);
  return start.routine(start.argument);
}

}  // namespace

// After vfork() the child shares its parent's memory and is not sampled.
bool pause_sampling() {
  if (!agent.active || ::getpid() != agent.pid)
    return false;
  hold_clock();
  account_process();
  close_event(own.event);
  own.event = nullptr;
  sigset_t ours;
  sigset_t before;
  ::sigemptyset(&ours);
  ::sigaddset(&ours, agent.signal);
  const timespec at_once = {};
  // Through the kernel, as the C library's functions are replaced.
  constexpr std::size_t kMaskBytes = 8;
  ::syscall(SYS_rt_sigprocmask, SIG_BLOCK, &ours, &before, kMaskBytes);
  while (::syscall(SYS_rt_sigtimedwait, &ours, nullptr, &at_once, kMaskBytes) ==
         agent.signal) {
  }
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, kMaskBytes);
  really_block_signal();
  hand_over_ignored_signals();
  return true;
}

void resume_sampling() {
  take_back_ignored_signals();
  really_unblock_signal();
  agent.arena.ring()->ended.store(0);
  if (own.sampled && !agent.clocked)
    change_period(random_period(agent.settings.interval_ns));
  release_clock();
}

void end_process() {
  if (agent.active && ::getpid() == agent.pid)
    account_process();
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
  if (!agent.active || agent.arena.ring()->state.load() ==
                           static_cast<std::uint32_t>(AgentState::kRefused))
    return agent.create_thread(thread, attributes, routine, argument);
  auto* const start = static_cast<Start*>(std::malloc(sizeof(Start)));
  if (start == nullptr)
    return EAGAIN;
  *start = {routine, argument, signal_looks_blocked()};
  const int error = agent.create_thread(thread, attributes, run_thread, start);
  if (error != 0)
    std::free(start);
  return error;
}
