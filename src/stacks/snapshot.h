#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"

namespace postflight {

// What the threads of some processes do at one moment, read from the processes
// or from what another program has saved.

struct LocalVariable {
  std::string name;
  std::string value;  // as Python's repr() writes it, cut

  bool operator==(const LocalVariable&) const = default;
};

struct StackFrame {
  std::string function;
  std::string file;  // or library
  std::int32_t line = 0;
  bool native = false;
  std::vector<LocalVariable> locals = {};

  bool operator==(const StackFrame&) const = default;
};

enum class ThreadState : std::uint8_t { kUnknown, kRunning, kWaiting };
std::string_view thread_state_name(ThreadState state);

// What two snapshots of a thread say together.
enum class Motion : std::uint8_t {
  kUnknown,  // only one
  kStuck,    // the same stack
  kBusy,     // other stacks
};
std::string_view motion_name(Motion motion);

struct ThreadStack {
  std::int64_t tid = 0;  // 0: not known
  std::string name = {};
  ThreadState state = ThreadState::kUnknown;
  bool python = false;  // has a Python stack, though it may be empty
  std::vector<StackFrame> frames = {};  // the innermost first
  std::string trouble = {};             // why frames are missing
  Motion motion = Motion::kUnknown;
};

struct ProcessStacks {
  std::int32_t rank = -1;  // -1: not known
  std::int64_t pid = 0;    // 0: not known
  std::string host = {};
  std::string command = {};
  std::string python = {};  // version
  std::string source = {};  // the file that it was read from
  std::vector<ThreadStack> threads = {};

  // The thread that runs the program's main module; nullptr without threads.
  const ThreadStack* main_thread() const;
  // "rank 5", "process 4711", or the name of the file.
  std::string name() const;
};

struct StackSnapshot {
  std::vector<ProcessStacks> processes = {};
  std::vector<Finding> findings = {};
};

// Those of one rank; none if the snapshot is null.
std::vector<const ProcessStacks*> processes_of_rank(
    const StackSnapshot* snapshot, std::int32_t rank);

// The innermost frame of the user's own Python code, not of torch, another
// package or Python itself; nullptr if there is none.
const StackFrame* own_frame(std::span<const StackFrame> frames);
// The innermost Python frame; nullptr if there is none.
const StackFrame* python_frame(std::span<const StackFrame> frames);
// "step (train.py:52)", with the base name of the file; not escaped.
std::string frame_text(const StackFrame& frame);
// "read (dataset.py:88)", or "all_reduce … step (train.py:52)" if the innermost
// function is not the user's; not escaped.
std::string place_text(std::span<const StackFrame> frames,
                       std::string_view ellipsis = "…");

// Joins several snapshots of the same processes, the oldest first: each thread
// keeps its last stack and learns whether it moved.
void join_snapshots(std::vector<ProcessStacks>& processes);

}  // namespace postflight
