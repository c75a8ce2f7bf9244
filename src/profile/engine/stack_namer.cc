#include "profile/engine/stack_namer.h"

namespace postflight {
namespace {

// Compilers split functions; the parts have this name with a suffix.
constexpr std::string_view kInterpreterLoop = "_PyEval_EvalFrameDefault";

}  // namespace

std::uint32_t marker(ProfileBuilder& profile, std::string_view name) {
  return profile.frame(
      {.kind = FrameKind::kMarker, .name = profile.text(name)});
}

std::uint32_t python_frame(const RawFrame& raw, CodeReader& codes,
                           ProfileBuilder& profile) {
  const PythonCode* const code = codes.find(raw.code);
  if (code == nullptr)
    return marker(profile, "<code freed>");
  return profile.frame(
      {.kind = FrameKind::kPython,
       .name = profile.text(code->name),
       .file = profile.text(code->file),
       .line = static_cast<std::uint32_t>(codes.line(*code, raw))});
}

std::uint32_t StackNamer::name(const RawStack& stack, std::uint32_t below) {
  if (stack.cut)
    below = profile_.stack(below, marker(profile_, "<truncated>"));
  if (below != below_ || changes_ != codes_.changes())
    last_.clear();
  below_ = below;
  std::uint32_t node = below;
  std::size_t depth = 0;
  for (auto raw = stack.frames.rbegin(); raw != stack.frames.rend();
       ++raw, ++depth) {
    if (depth < last_.size()) {
      const Named& known = last_[depth];
      if (known.raw.same_place(*raw) &&
          known.raw.instruction == raw->instruction) {
        node = known.stack;
        continue;
      }
      last_.resize(depth);
    }
    node = profile_.stack(node, python_frame(*raw, codes_, profile_));
    last_.push_back({*raw, node});
  }
  last_.resize(depth);
  changes_ = codes_.changes();
  if (stack.state == StackState::kTorn)
    node = profile_.stack(node, marker(profile_, "<torn>"));
  return node;
}

std::uint32_t merged_stack(const RawStack& python,
                           std::span<const std::uint64_t> native,
                           NativeUnwinder& unwinder, CodeReader* codes,
                           ProfileBuilder& profile) {
  std::vector<std::uint32_t> frames;  // the innermost first
  auto next = python.frames.begin();
  const auto take_run = [&](bool all) {
    while (next != python.frames.end()) {
      frames.push_back(python_frame(*next, *codes, profile));
      const bool entered = next->entry;
      ++next;
      if (entered && !all)
        break;
    }
  };
  for (std::size_t i = 0; i < native.size(); ++i) {
    const std::vector<NativeFrame>& here =
        unwinder.frames(i == 0 ? native[i] : native[i] - 1);
    // Functions inlined into the loop belong to the loop.
    if (here.back().function.starts_with(kInterpreterLoop)) {
      take_run(false);
      continue;
    }
    for (const NativeFrame& frame : here)
      frames.push_back(profile.frame({.kind = FrameKind::kNative,
                                      .name = profile.text(frame.function),
                                      .file = profile.text(frame.file),
                                      .line = frame.line}));
  }
  take_run(true);
  std::uint32_t node = 0;
  if (python.cut)
    node = profile.stack(node, marker(profile, "<truncated>"));
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
    node = profile.stack(node, *frame);
  return node;
}

}  // namespace postflight
