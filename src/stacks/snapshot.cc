#include "stacks/snapshot.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace postflight {
namespace {

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool is_library(const StackFrame& frame) {
  for (const std::string_view part :
       {"/site-packages/", "/dist-packages/", "/torch/", "<frozen",
        "/lib/python3", "<string>", "<unknown"})
    if (frame.file.find(part) != frame.file.npos)
      return true;
  return frame.file.empty();
}

// The outermost Python frame of the threads that the module threading starts.
bool is_started_thread(const ThreadStack& thread) {
  for (auto frame = thread.frames.rbegin(); frame != thread.frames.rend();
       ++frame)
    if (!frame->native)
      return frame->function == "_bootstrap" ||
             frame->function == "Thread._bootstrap";
  return false;
}

// What distinguishes a process, and a thread of it, in several snapshots.
using ProcessKey = std::tuple<std::string, std::int32_t, std::int64_t>;

ProcessKey key_of(const ProcessStacks& process) {
  // A rank may have been started again, but then its threads differ, too.
  if (process.rank >= 0)
    return {"", process.rank, 0};
  if (process.pid != 0)
    return {process.host, -1, process.pid};
  return {process.source, -1, 0};
}

const ThreadStack* same_thread(const ProcessStacks& process,
                               const ThreadStack& wanted, bool is_main) {
  if (is_main)
    return process.main_thread();
  for (const ThreadStack& thread : process.threads)
    if (wanted.tid != 0 ? thread.tid == wanted.tid
                        : !wanted.name.empty() && thread.name == wanted.name)
      return &thread;
  return nullptr;
}

}  // namespace

std::string_view thread_state_name(ThreadState state) {
  switch (state) {
    case ThreadState::kUnknown:
      return "unknown";
    case ThreadState::kRunning:
      return "running";
    case ThreadState::kWaiting:
      return "waiting";
  }
  return "";
}

std::string_view motion_name(Motion motion) {
  switch (motion) {
    case Motion::kUnknown:
      return "unknown";
    case Motion::kStuck:
      return "stuck";
    case Motion::kBusy:
      return "busy";
  }
  return "";
}

const ThreadStack* ProcessStacks::main_thread() const {
  if (threads.empty())
    return nullptr;
  if (pid != 0)
    for (const ThreadStack& thread : threads)
      if (thread.tid == pid)
        return &thread;
  for (const ThreadStack& thread : threads)
    if (thread.name == "MainThread")
      return &thread;
  // faulthandler lists the newest thread first.
  for (auto thread = threads.rbegin(); thread != threads.rend(); ++thread)
    if (thread->python && !thread->frames.empty() &&
        !is_started_thread(*thread))
      return &*thread;
  // gdb lists the newest first, too.
  return &threads.back();
}

std::string ProcessStacks::name() const {
  if (rank >= 0)
    return fmt::format("rank {}", rank);
  if (pid != 0)
    return fmt::format("process {}", pid);
  return source;
}

std::vector<const ProcessStacks*> processes_of_rank(
    const StackSnapshot* snapshot, std::int32_t rank) {
  std::vector<const ProcessStacks*> found;
  if (snapshot != nullptr)
    for (const ProcessStacks& process : snapshot->processes)
      if (process.rank == rank)
        found.push_back(&process);
  return found;
}

const StackFrame* own_frame(std::span<const StackFrame> frames) {
  for (const StackFrame& frame : frames)
    if (!frame.native && !is_library(frame))
      return &frame;
  return nullptr;
}

const StackFrame* python_frame(std::span<const StackFrame> frames) {
  const auto found = std::ranges::find(frames, false, &StackFrame::native);
  return found == frames.end() ? nullptr : &*found;
}

std::string frame_text(const StackFrame& frame) {
  if (frame.file.empty())
    return frame.function;
  if (frame.native)
    return frame.line == 0
               ? fmt::format("{} [{}]", frame.function, base_name(frame.file))
               : fmt::format("{} [{}:{}]", frame.function,
                             base_name(frame.file), frame.line);
  if (frame.line == 0)
    return fmt::format("{} ({})", frame.function, base_name(frame.file));
  return fmt::format("{} ({}:{})", frame.function, base_name(frame.file),
                     frame.line);
}

std::string place_text(std::span<const StackFrame> frames,
                       std::string_view ellipsis) {
  if (frames.empty())
    return "no frames";
  const StackFrame* const inner = python_frame(frames);
  if (inner == nullptr)
    return frame_text(frames.front());
  const StackFrame* const own = own_frame(frames);
  if (own == nullptr || own == inner)
    return frame_text(*inner);
  return fmt::format("{} {} {}", inner->function, ellipsis, frame_text(*own));
}

void join_snapshots(std::vector<ProcessStacks>& processes) {
  std::vector<ProcessStacks> joined;
  std::map<ProcessKey, std::size_t> known;
  for (ProcessStacks& process : processes) {
    const auto [found, is_new] =
        known.try_emplace(key_of(process), joined.size());
    if (is_new) {
      joined.push_back(std::move(process));
      continue;
    }
    ProcessStacks& before = joined[found->second];
    const ThreadStack* const main = process.main_thread();
    for (ThreadStack& thread : process.threads) {
      const ThreadStack* const old =
          same_thread(before, thread, &thread == main);
      if (old == nullptr || old->frames.empty() || thread.frames.empty())
        continue;
      thread.motion =
          old->motion == Motion::kBusy ||
                  !std::ranges::equal(
                      old->frames, thread.frames,
                      [](const StackFrame& a, const StackFrame& b) {
                        return a.function == b.function && a.line == b.line &&
                               base_name(a.file) == base_name(b.file);
                      })
              ? Motion::kBusy
              : Motion::kStuck;
    }
    before = std::move(process);
  }
  processes = std::move(joined);
}

}  // namespace postflight
