#include "profile/engine/stack_namer.h"

namespace postflight {

std::uint32_t marker(ProfileBuilder& profile, std::string_view name) {
  return profile.frame(
      {.kind = FrameKind::kMarker, .name = profile.text(name)});
}

std::uint32_t python_frame(const RawFrame& raw, CodeReader& codes,
                           ProfileBuilder& profile) {
  const PythonCode* const code = codes.find(raw.code);
  if (code == nullptr)
    return marker(profile, "<code gone>");
  return profile.frame(
      {.kind = FrameKind::kPython,
       .name = profile.text(code->name),
       .file = profile.text(code->file),
       .line = static_cast<std::uint32_t>(codes.line(*code, raw))});
}

std::uint32_t StackNamer::name(const RawStack& stack, std::uint32_t below) {
  if (stack.cut)
    below = profile_.stack(below, marker(profile_, "<cut>"));
  if (below != below_)
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
  if (stack.state == StackState::kTorn)
    node = profile_.stack(node, marker(profile_, "<torn>"));
  return node;
}

}  // namespace postflight
