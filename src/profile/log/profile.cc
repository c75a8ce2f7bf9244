#include "profile/log/profile.h"

#include <algorithm>

#include <fmt/format.h>

namespace postflight {
namespace {

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t value = (a ^ (b * 0x9e3779b97f4a7c15)) * 0xbf58476d1ce4e5b9;
  return value ^ (value >> 29);
}

template <class Map, class Key, class Values>
std::uint32_t number_of(Map& map, const Key& key, Values& values) {
  const auto [found, fresh] =
      map.try_emplace(key, static_cast<std::uint32_t>(values.size()));
  if (fresh)
    values.push_back(key);
  return found->second;
}

}  // namespace

std::string Profile::phase_name(std::uint32_t phase) const {
  if (phase == 0)
    return "no phase";
  std::vector<std::string_view> parts;
  for (; phase != 0; phase = phases[phase].parent)
    parts.push_back(texts[phases[phase].name]);
  std::ranges::reverse(parts);
  return fmt::format("{}", fmt::join(parts, "/"));
}

std::string Profile::phase_frame_id(std::uint32_t phase) const {
  while (phase != 0 && texts[phases[phase].frame_id].empty())
    phase = phases[phase].parent;
  return phase == 0 ? std::string() : texts[phases[phase].frame_id];
}

std::size_t ProfileBuilder::Hash::operator()(const ProfileFrame& frame) const {
  const std::uint64_t place = (std::uint64_t{frame.name} << 32) | frame.file;
  return mixed(place, (std::uint64_t{frame.line} << 2) |
                          static_cast<std::uint64_t>(frame.kind));
}

std::size_t ProfileBuilder::Hash::operator()(const StackNode& node) const {
  return mixed(node.parent, node.frame);
}

std::uint32_t ProfileBuilder::text(std::string_view text) {
  if (const auto known = texts_.find(text); known != texts_.end())
    return known->second;
  return number_of(texts_, std::string(text), profile_.texts);
}

std::uint32_t ProfileBuilder::frame(const ProfileFrame& frame) {
  return number_of(frames_, frame, profile_.frames);
}

std::uint32_t ProfileBuilder::stack(std::uint32_t parent, std::uint32_t frame) {
  return number_of(stacks_, StackNode{parent, frame}, profile_.stacks);
}

std::uint32_t ProfileBuilder::phase(const ProfilePhase& phase) {
  return number_of(phases_, phase, profile_.phases);
}

std::uint32_t ProfileBuilder::thread(const ProfileThread& thread) {
  return number_of(threads_, thread, profile_.threads);
}

}  // namespace postflight
