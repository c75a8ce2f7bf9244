// The agent: a library that a profiled program is started with (LD_PRELOAD).
//
// Each thread has a perf event that counts its CPU time and sends the thread a
// signal at every interval. The handler runs on that thread, so the frames it
// walks stand still, and puts what it sees into a ring of shared memory; names
// are looked up by the engine, from outside.
//
// A handler may strike between any two instructions, also while a call is
// being set up and the new frame's links are not written yet. So a frame is
// read directly only if it lies inside the thread's own chunks of stack, and
// through the kernel, which checks the address, if it does not. Nothing here
// can fault, and no handler for faults is needed.

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
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "profile/phase_layout.h"
#include "profile/sample_ring.h"

namespace postflight {
namespace {

constexpr std::size_t kMostChunks = 64;
constexpr std::uint64_t kMostChunkBytes = 4 << 20;
constexpr std::uint64_t kChunkHeader = 24;
constexpr std::uint32_t kMostFrames = 4096;
constexpr std::size_t kFramesBytes = std::size_t{16} * kMostFrames;
constexpr std::size_t kNameBytes = 512;

// The whole agent; zero until set_up().
struct Agent {
  RingHeader* ring = nullptr;
  std::byte* data = nullptr;
  std::byte* phases = nullptr;
  std::uint64_t interval_ns = 0;
  int signal = 0;
  bool refuse = false;  // tests: as if perf events were forbidden
  char folder[kNameBytes] = {};
  void* (*thread_state)() = nullptr;  // PyGILState_GetThisThreadState
  pthread_key_t key = 0;
};
Agent agent;

// Of each thread. Initial-exec, so that a handler finds it without allocating.
struct Chunk {
  std::uint64_t address;
  std::uint64_t size;
};
struct ThreadData {
  int event;  // plus one; 0: none
  bool in_handler;
  std::int32_t tid;
  std::uint32_t chunk_count;
  std::uint32_t phase_slot;
  std::uint64_t stack_end;
  std::uint64_t* frames;  // room for kMostFrames pairs
  Chunk chunks[kMostChunks];
};
[[gnu::tls_model("initial-exec")]] thread_local ThreadData own;

std::uint64_t now_ns() {
  timespec time = {};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

// Copies from any address; false if there is nothing.
bool checked_copy(void* to, std::uint64_t from, std::size_t size) {
  const iovec here = {to, size};
  const iovec there = {reinterpret_cast<void*>(from), size};
  return ::syscall(SYS_process_vm_readv, ::getpid(), &here, 1, &there, 1, 0) ==
         static_cast<long>(size);
}

std::uint64_t word_at(std::uint64_t address) {
  std::uint64_t value;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof(value));
  return value;
}

// The thread's chunks of frames. The list is looked up anew only when its top
// has changed, which it rarely does.
void refresh_chunks(std::uint64_t top) {
  if (own.chunk_count != 0 && own.chunks[0].address == top)
    return;
  own.chunk_count = 0;
  for (std::uint64_t at = top; at != 0 && own.chunk_count < kMostChunks;) {
    std::uint64_t header[3];
    if (!checked_copy(header, at, sizeof(header)) || header[1] < kChunkHeader ||
        header[1] > kMostChunkBytes)
      return;
    own.chunks[own.chunk_count++] = {at, header[1]};
    at = header[0];
  }
}

bool in_chunks(std::uint64_t address, std::uint64_t size) {
  for (std::uint32_t i = 0; i < own.chunk_count; ++i) {
    const Chunk& chunk = own.chunks[i];
    if (address >= chunk.address + kChunkHeader &&
        address + size <= chunk.address + chunk.size)
      return true;
  }
  return false;
}

struct Walk {
  std::uint32_t frames = 0;
  bool torn = false;
  bool cut = false;
};

// Writes code and instruction of each frame to `out`, the innermost first.
Walk walk_frames(std::uint64_t thread, std::uint64_t* out, std::uint32_t most) {
  const RingLayout& layout = agent.ring->layout;
  Walk walk;
  std::uint64_t frame = word_at(thread + layout.thread_frame);
  if (frame != 0 && layout.has_top_frame != 0)
    frame = word_at(frame + layout.top_frame);
  refresh_chunks(word_at(thread + layout.thread_chunk));
  std::byte copy[256];
  for (std::uint32_t steps = 0; frame != 0; ++steps) {
    if (walk.frames == most) {
      walk.cut = true;
      break;
    }
    if (frame % 8 != 0 || steps > 2 * kMostFrames) {
      walk.torn = true;
      break;
    }
    const auto* bytes = reinterpret_cast<const std::byte*>(frame);
    if (!in_chunks(frame, layout.frame_size)) {
      if (!checked_copy(copy, frame, layout.frame_size)) {
        walk.torn = true;
        break;
      }
      bytes = copy;
    }
    const auto field = [bytes](std::uint32_t offset) {
      std::uint64_t value;
      std::memcpy(&value, bytes + offset, sizeof(value));
      return value;
    };
    const auto owner = static_cast<std::uint32_t>(bytes[layout.frame_owner]);
    if (owner >= layout.first_shim_owner) {
      if (walk.frames != 0)
        out[std::size_t{2} * walk.frames - 1] |= kEntryBit;
    } else {
      out[std::size_t{2} * walk.frames] =
          field(layout.frame_code) & ~std::uint64_t{layout.code_mask_low};
      out[std::size_t{2} * walk.frames + 1] = field(layout.frame_instruction);
      if (layout.has_is_entry != 0 && bytes[layout.is_entry] != std::byte{0})
        out[std::size_t{2} * walk.frames + 1] |= kEntryBit;
      ++walk.frames;
    }
    const std::uint64_t previous = field(layout.frame_previous);
    if (previous == frame) {
      walk.torn = true;
      break;
    }
    frame = previous;
  }
  return walk;
}

std::uint32_t phase_word(std::size_t offset) {
  return __atomic_load_n(
      reinterpret_cast<const std::uint32_t*>(agent.phases + offset),
      __ATOMIC_ACQUIRE);
}

// The phases that the thread is in; how many.
std::uint16_t copy_phases(std::uint32_t* out) {
  using Table = PhaseTableLayout;
  if (agent.phases == nullptr)
    return 0;
  const auto tid = static_cast<std::uint32_t>(own.tid);
  const auto slot_at = [](std::uint32_t slot) {
    return Table::kHeaderBytes + slot * Table::kSlotBytes;
  };
  const std::uint32_t used = phase_word(Table::kUsedSlotsOffset);
  if (used > Table::kSlots)
    return 0;
  if (own.phase_slot >= used || phase_word(slot_at(own.phase_slot)) != tid) {
    own.phase_slot = 0;
    while (own.phase_slot < used && phase_word(slot_at(own.phase_slot)) != tid)
      ++own.phase_slot;
    if (own.phase_slot >= used)
      return 0;
  }
  const std::size_t at = slot_at(own.phase_slot);
  const std::uint32_t depth = phase_word(at + 8);
  if (phase_word(at + 4) % 2 != 0 || depth > Table::kMostPhases)
    return 0;
  for (std::uint32_t i = 0; i < depth; ++i)
    out[i] = phase_word(at + 12 + std::size_t{4} * i);
  return static_cast<std::uint16_t>(depth);
}

// Room for one record, or null. Several threads may ask at the same time; each
// gets its own, and a filler takes what is too small before the ring's end.
std::byte* reserve(std::uint32_t size) {
  RingHeader& ring = *agent.ring;
  std::uint64_t head = ring.head.load();
  while (true) {
    const std::uint64_t left = kRingBytes - head % kRingBytes;
    const std::uint64_t filler = left < size ? left : 0;
    const std::uint64_t end = head + filler + size;
    if (end - ring.tail.load() > kRingBytes) {
      ring.lost.fetch_add(1);
      return nullptr;
    }
    if (!ring.head.compare_exchange_weak(head, end))
      continue;
    if (filler != 0) {
      auto* const skip =
          reinterpret_cast<RingRecord*>(agent.data + head % kRingBytes);
      skip->kind = 0;
      skip->size.store(static_cast<std::uint32_t>(filler),
                       std::memory_order_release);
      head += filler;
    }
    return agent.data + head % kRingBytes;
  }
}

constexpr std::size_t round_up(std::size_t size) {
  return (size + 7) & ~std::size_t{7};
}

void take_sample(const ucontext_t& context) {
  static_assert(kMostFrames <= UINT16_MAX);
  RingHeader& ring = *agent.ring;
  const std::uint64_t start = now_ns();
  void* const thread = agent.thread_state();
  // Walked into memory of the thread first: how much room it takes in the ring
  // is known only then, and the stack may be small.
  std::uint64_t* const frames = own.frames;
  const std::uint32_t most = ring.layout.most_frames < kMostFrames
                                 ? ring.layout.most_frames
                                 : kMostFrames;
  Walk walk;
  if (thread != nullptr)
    walk = walk_frames(reinterpret_cast<std::uint64_t>(thread), frames, most);
  std::uint32_t phases[PhaseTableLayout::kMostPhases + 1] = {};
  const std::uint16_t phase_count = copy_phases(phases);
  const auto sp =
      static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RSP]);
  std::uint64_t stack = 0;
  if (ring.layout.stack_bytes != 0 && own.stack_end > sp)
    stack = own.stack_end - sp < ring.layout.stack_bytes
                ? (own.stack_end - sp) & ~std::uint64_t{7}
                : ring.layout.stack_bytes;
  const std::size_t size = sizeof(RingRecord) + std::size_t{16} * walk.frames +
                           round_up(std::size_t{4} * phase_count) +
                           (stack == 0 ? 0 : 8 * kRingRegisters + stack);
  std::byte* const place = reserve(static_cast<std::uint32_t>(size));
  if (place == nullptr)
    return;
  auto* const record = reinterpret_cast<RingRecord*>(place);
  record->kind = 1;
  record->time_ns = start;
  record->tid = own.tid;
  record->frames = static_cast<std::uint16_t>(walk.frames);
  record->phases = phase_count;
  record->flags = (walk.torn ? kRecordTorn : 0) | (walk.cut ? kRecordCut : 0);
  record->stack_bytes = static_cast<std::uint32_t>(stack);
  std::byte* to = place + sizeof(RingRecord);
  std::memcpy(to, frames, std::size_t{16} * walk.frames);
  to += std::size_t{16} * walk.frames;
  std::memcpy(to, phases, round_up(std::size_t{4} * phase_count));
  to += round_up(std::size_t{4} * phase_count);
  if (stack != 0) {
    const greg_t* const r = context.uc_mcontext.gregs;
    const greg_t kept[kRingRegisters] = {r[REG_RIP], r[REG_RSP], r[REG_RBP],
                                         r[REG_RBX], r[REG_R12], r[REG_R13],
                                         r[REG_R14], r[REG_R15]};
    std::memcpy(to, kept, sizeof(kept));
    std::memcpy(to + sizeof(kept), reinterpret_cast<const void*>(sp), stack);
  }
  record->size.store(static_cast<std::uint32_t>(size),
                     std::memory_order_release);
  ring.taken.fetch_add(1, std::memory_order_relaxed);
  if (walk.torn)
    ring.torn.fetch_add(1, std::memory_order_relaxed);
  ring.handler_ns.fetch_add(now_ns() - start, std::memory_order_relaxed);
}

void handle(int, siginfo_t*, void* context) {
  const int error = errno;
  if (agent.ring != nullptr && !own.in_handler && own.event != 0 &&
      agent.ring->layout_ready.load(std::memory_order_acquire) != 0) {
    own.in_handler = true;
    take_sample(*static_cast<const ucontext_t*>(context));
    own.in_handler = false;
  }
  errno = error;
}

// The event of the calling thread; the error, or 0.
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

// Makes the calling thread one that is sampled; the error, or 0.
int begin_thread() {
  own.tid = static_cast<std::int32_t>(::syscall(SYS_gettid));
  own.event = 0;
  own.in_handler = false;
  own.chunk_count = 0;
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
        ::mmap(nullptr, kFramesBytes, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
      return ENOMEM;
    own.frames = static_cast<std::uint64_t*>(room);
  }
  const int error = open_event();
  if (error == 0)
    ::pthread_setspecific(agent.key, &own);
  return error;
}

void end_thread(void*) {
  close_event();
  if (own.frames != nullptr)
    ::munmap(own.frames, kFramesBytes);
  own.frames = nullptr;
}

// A file of the folder, mapped; null if it cannot be.
std::byte* map_file(const char* suffix, std::size_t size) {
  char path[kNameBytes + 64];
  char* to = path;
  const std::size_t length = std::strlen(agent.folder);
  std::memcpy(to, agent.folder, length);
  to += length;
  *to++ = '/';
  char digits[16];
  int count = 0;
  for (int pid = ::getpid(); pid != 0; pid /= 10)
    digits[count++] = static_cast<char>('0' + pid % 10);
  while (count != 0)
    *to++ = digits[--count];
  std::memcpy(to, suffix, std::strlen(suffix) + 1);
  const int file = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0)
    return nullptr;
  // All of it is there before it is used: a disk that is full later would end
  // the program at its next write, and a page that is missing costs more than
  // the whole handler.
  void* memory = MAP_FAILED;
  if (::posix_fallocate(file, 0, static_cast<off_t>(size)) == 0)
    memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_POPULATE, file, 0);
  ::close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

// A ring and an event for this process, new or forked.
void begin_process() {
  std::byte* const memory = map_file(".ring", kRingDataOffset + kRingBytes);
  if (memory == nullptr)
    return;
  auto* const ring = reinterpret_cast<RingHeader*>(memory);
  ring->magic = kRingMagic;
  ring->layout_ready.store(0);
  ring->generation.fetch_add(1);
  agent.data = memory + kRingDataOffset;
  agent.phases = map_file(".phases", PhaseTableLayout::kBytes);
  agent.ring = ring;
  const int error = begin_thread();
  ring->error = error;
  ring->state.store(static_cast<std::uint32_t>(
      error == 0 ? AgentState::kSampling : AgentState::kRefused));
}

// A forked child has only the thread that forked, and its parent's event, whose
// signals go to the parent.
void after_fork() {
  if (own.event != 0)
    ::close(own.event - 1);
  own.event = 0;
  begin_process();
}

// A real-time signal that nobody uses.
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
  const char* const folder = std::getenv("POSTFLIGHT_PHASES");
  agent.interval_ns = number(std::getenv("POSTFLIGHT_AGENT_NS"));
  agent.refuse = std::getenv("POSTFLIGHT_NO_PERF") != nullptr;
  if (folder == nullptr || std::strlen(folder) >= kNameBytes ||
      agent.interval_ns == 0)
    return;
  std::memcpy(agent.folder, folder, std::strlen(folder) + 1);
  // Only Python has this; all others are left alone.
  *reinterpret_cast<void**>(&agent.thread_state) =
      ::dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
  agent.signal = free_signal();
  if (agent.thread_state == nullptr || agent.signal == 0 ||
      ::pthread_key_create(&agent.key, end_thread) != 0)
    return;
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  ::sigfillset(&action.sa_mask);
  ::sigaction(agent.signal, &action, nullptr);
  // When too many signals are queued, the kernel sends SIGIO instead, which
  // would end the program.
  struct sigaction used;
  if (::sigaction(SIGIO, nullptr, &used) == 0 && used.sa_handler == SIG_DFL)
    ::signal(SIGIO, SIG_IGN);
  ::pthread_atfork(nullptr, nullptr, after_fork);
  begin_process();
}

// At the end, the engine gets a moment to take what is left.
[[gnu::destructor]] void tear_down() {
  close_event();
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
}  // namespace postflight

// In the place of the C library's: every thread begins with its event.
extern "C" [[gnu::visibility("default")]] int pthread_create(
    pthread_t* thread, const pthread_attr_t* attributes,
    void* (*routine)(void*), void* argument) {
  using namespace postflight;
  using Create =
      int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static std::atomic<Create> create = nullptr;
  if (create == nullptr)
    create = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  if (agent.ring == nullptr ||
      agent.ring->state.load() !=
          static_cast<std::uint32_t>(AgentState::kSampling))
    return create.load()(thread, attributes, routine, argument);
  auto* const start = static_cast<Start*>(std::malloc(sizeof(Start)));
  if (start == nullptr)
    return EAGAIN;
  *start = {routine, argument};
  const int error = create.load()(thread, attributes, run_thread, start);
  if (error != 0)
    std::free(start);
  return error;
}
