#pragma once

// How a process is sampled: two engines and the one seam between them.
//
// The problem. A profiler must work on a program that is already running and
// was not prepared for it. On a program that it launches itself it should cost
// next to nothing and see native frames, too. No single mechanism does both:
//
// - Reading the memory of the process from outside needs no co-operation and
//   sees waiting threads. But every sample costs several system calls per
//   thread, and a thread that runs changes its stack while it is copied (see
//   SharedProcessor).
// - A signal handler inside the process sees its own thread standing still and
//   takes about a microsecond. But it has to be loaded when the program
//   starts, it needs a source of signals, and it sees only threads that run.
//
// The idea. Both produce the same value: samples of threads, with a stack in
// one common profile. So the seam is one process and one tick. SamplingLoop
// ticks over a tree of processes. Each SampledProcess keeps a ProcessState up
// to date (its interpreter, threads and phases, which are found from outside in
// either case) and asks its Engine for samples. ExternalEngine reads the stacks
// at that moment; its samples have no weight, and the loop gives them the time
// since the last tick. AgentEngine drains the ring that the agent has filled
// since; its samples have their own times and weights. What comes after the
// seam (naming frames, filters, the log) is the same for both.
//
// CPU time is what the kernel says that a thread ran, in user code and in the
// kernel. The agent weighs its samples by the CPU clock of their thread,
// ExternalEngine by the thread's schedstat. A thread that the agent does not
// account for, because it is in the kernel for long or blocks signals, is
// sampled from outside meanwhile.
//
// An example. `postflight profile -- python train.py` starts the program with
// the agent preloaded, under ExternalEngine. Within milliseconds the agent
// claims a ring, and SampledProcess switches to AgentEngine. As soon as the
// interpreter is mapped, it writes the layout of that Python version into the
// ring: from then on samples have frames. A forked worker claims a ring of its
// own and knows the layout from its parent. One that calls exec is a new
// program, whose agent claims another ring. A worker that clears LD_PRELOAD
// stays with ExternalEngine.
//
// Rejected:
// - Stopping the process, by ptrace or SIGSTOP: a profiler that is killed
//   leaves it stopped, and there can be only one tracer.
// - Injecting the agent into a running process: this needs ptrace, and calls
//   dlopen at a point where the program may hold any lock.
// - One engine for the whole run: the processes of a tree differ in programs,
//   Python versions and permissions.
// - An agent that names frames itself: it would have to allocate memory and
//   take locks inside somebody else's program.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "profile/log/profile.h"
#include "profile/phase/filter.h"

namespace postflight {

class AgentArena;

enum class ProfileMode : std::uint8_t {
  kCpu,   // threads that run
  kWall,  // waiting threads, too
};

struct SamplingOptions {
  std::chrono::nanoseconds interval{10'101'010};  // 99 Hz
  std::chrono::nanoseconds duration{0};           // 0: until the end
  ProfileMode mode = ProfileMode::kCpu;
  std::size_t most_frames = 500;  // per stack
  bool children = true;
  // Which phases to keep; null: all, and the time outside phases. It must
  // outlive the loop.
  const PhaseFilter* phase_filter = nullptr;
  std::int32_t rank = -1;
  // The folder where processes without an agent publish their phases; empty:
  // none.
  std::filesystem::path folder = {};
  // Programs were started with the agent, which joins this arena. Processes
  // that it cannot sample are sampled from outside. It must outlive the loop.
  AgentArena* arena = nullptr;
  bool native = false;  // native frames, too
};

// Takes the samples of one process.
class Engine {
 public:
  virtual ~Engine() = default;

  // Appends the samples taken since the last call. Those with a time have that
  // of the steady clock, the others were taken now; those without a weight
  // stand for the time since the last call.
  virtual void sample(std::vector<ProfileSample>& samples) = 0;
  // Called after the list of threads was read again.
  virtual void threads_refreshed() = 0;
  // The interpreter that threads were read with is gone, or was found just now.
  virtual void python_ended() = 0;
  // Whether it depends on being called in every interval. Otherwise now and
  // then is enough.
  virtual bool needs_ticks() const = 0;
  // Up to which of its CPU time each thread has been sampled.
  virtual std::map<pid_t, std::uint64_t> accounted() const = 0;
  // For the report: "external, reads without stopping".
  virtual std::string_view title() const = 0;
};

}  // namespace postflight
