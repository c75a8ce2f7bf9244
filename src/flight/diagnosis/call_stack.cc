#include "flight/diagnosis/call_stack.h"

#include <algorithm>
#include <string_view>

namespace postflight {
namespace {

// Files of installed packages and of Python itself.
bool is_library(std::string_view file) {
  for (const std::string_view part :
       {"/site-packages/", "/dist-packages/", "/torch/", "<frozen",
        "/lib/python3", "<string>", "<unknown"})
    if (file.find(part) != file.npos)
      return true;
  return file.empty();
}

}  // namespace

bool is_own_frame(const Job& job, const Frame& frame) {
  return !is_library(job.text(frame.file));
}

const Frame* own_frame(const Job& job, StackId stack) {
  const std::span<const FrameId> frames = job.tables.stack(stack);
  for (const FrameId id : frames)
    if (is_own_frame(job, job.tables.frame(id)))
      return &job.tables.frame(id);
  return frames.empty() ? nullptr : &job.tables.frame(frames[0]);
}

std::string frame_text(const Job& job, const Frame& frame) {
  const std::string_view file = job.text(frame.file);
  return fmt::format("{} ({}:{})", job.text(frame.function),
                     file.substr(file.rfind('/') + 1), frame.line);
}

std::optional<StackDivergence> stack_divergence(const Job& job, StackId first,
                                                StackId second) {
  const std::span<const FrameId> a = job.tables.stack(first);
  const std::span<const FrameId> b = job.tables.stack(second);
  if (first == second || a.empty() || b.empty())
    return std::nullopt;
  // Stacks are innermost first.
  std::size_t common = 0;
  while (common < a.size() && common < b.size() &&
         a[a.size() - 1 - common] == b[b.size() - 1 - common])
    ++common;
  StackDivergence divergence;
  if (common < a.size())
    divergence.first = &job.tables.frame(a[a.size() - 1 - common]);
  if (common < b.size())
    divergence.second = &job.tables.frame(b[b.size() - 1 - common]);
  return divergence;
}

}  // namespace postflight
