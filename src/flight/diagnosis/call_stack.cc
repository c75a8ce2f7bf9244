#include "flight/diagnosis/call_stack.h"

#include <algorithm>
#include <string_view>

namespace postflight {
namespace {

// Where packages and Python itself are installed.
bool is_library(std::string_view file) {
  for (const std::string_view part :
       {"/site-packages/", "/dist-packages/", "/torch/", "<frozen",
        "/lib/python3", "<string>", "<unknown"})
    if (file.find(part) != file.npos)
      return true;
  return file.empty();
}

}  // namespace

const Frame* own_frame(const Job& job, StackId stack) {
  const std::span<const FrameId> frames = job.tables.stack(stack);
  for (const FrameId id : frames)
    if (!is_library(job.text(job.tables.frame(id).file)))
      return &job.tables.frame(id);
  return frames.empty() ? nullptr : &job.tables.frame(frames[0]);
}

std::string frame_text(const Job& job, const Frame& frame) {
  const std::string_view file = job.text(frame.file);
  return fmt::format("{} ({}:{})", job.text(frame.function),
                     file.substr(file.rfind('/') + 1), frame.line);
}

std::optional<Parting> part(const Job& job, StackId here, StackId there) {
  const std::span<const FrameId> a = job.tables.stack(here);
  const std::span<const FrameId> b = job.tables.stack(there);
  if (here == there || a.empty() || b.empty())
    return std::nullopt;
  // Stacks are innermost first.
  std::size_t common = 0;
  while (common < a.size() && common < b.size() &&
         a[a.size() - 1 - common] == b[b.size() - 1 - common])
    ++common;
  Parting parting;
  if (common < a.size())
    parting.here = &job.tables.frame(a[a.size() - 1 - common]);
  if (common < b.size())
    parting.there = &job.tables.frame(b[b.size() - 1 - common]);
  return parting;
}

}  // namespace postflight
