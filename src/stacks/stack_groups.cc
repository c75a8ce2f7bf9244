#include "stacks/stack_groups.h"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "flight/model/rank_set.h"

namespace postflight {
namespace {

// The innermost function, and the user's frame with all around it.
std::vector<StackFrame> place_of(std::span<const StackFrame> frames) {
  std::vector<StackFrame> place;
  const StackFrame* const inner = python_frame(frames);
  const StackFrame* const own = own_frame(frames);
  if (inner != nullptr && inner != own) {
    place.push_back(*inner);
    place.back().line = 0;
  }
  const std::size_t first = own == nullptr
                                ? frames.size()
                                : static_cast<std::size_t>(own - frames.data());
  for (const StackFrame& frame : frames.subspan(first))
    if (!frame.native)
      place.push_back(frame);
  return place;
}

// One text for each different frame, to look it up.
std::string key_of(const StackFrame& frame) {
  return fmt::format("{}\n{}\n{}\n{}\n", frame.function, frame.file, frame.line,
                     frame.native);
}

using GroupList = std::vector<const StackGroup*>;

const StackFrame& frame_at(const StackGroup& group, std::size_t depth) {
  return group.frames[group.frames.size() - 1 - depth];
}

std::vector<std::size_t> members_of(const GroupList& groups) {
  std::vector<std::size_t> all;
  for (const StackGroup* const group : groups)
    all.insert(all.end(), group->processes.begin(), group->processes.end());
  std::ranges::sort(all);
  return all;
}

// The groups that have a frame at this depth, by that frame, those with fewer
// processes first.
std::vector<GroupList> branches_of(const GroupList& groups, std::size_t depth) {
  std::vector<GroupList> branches;
  std::unordered_map<std::string, std::size_t> known;
  for (const StackGroup* const group : groups) {
    if (group->frames.size() <= depth)
      continue;
    const auto [found, is_new] =
        known.try_emplace(key_of(frame_at(*group, depth)), branches.size());
    if (is_new)
      branches.emplace_back();
    branches[found->second].push_back(group);
  }
  std::ranges::stable_sort(branches, {}, [](const GroupList& branch) {
    return members_of(branch).size();
  });
  return branches;
}

}  // namespace

std::vector<StackGroup> group_stacks(
    const std::vector<ProcessStacks>& processes) {
  std::vector<StackGroup> groups;
  std::unordered_map<std::string, std::size_t> known;
  std::size_t total = 0;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const ThreadStack* const main = processes[i].main_thread();
    if (main == nullptr || main->frames.empty())
      continue;
    ++total;
    std::string place;
    for (const StackFrame& frame : place_of(main->frames))
      place += key_of(frame);
    const auto [found, is_new] =
        known.try_emplace(std::move(place), groups.size());
    if (is_new)
      groups.push_back({.processes = {}, .frames = main->frames});
    groups[found->second].processes.push_back(i);
  }
  std::ranges::stable_sort(groups, {}, [](const StackGroup& group) {
    return group.processes.size();
  });
  if (!groups.empty() && groups.back().processes.size() * 2 > total)
    for (StackGroup& group : std::span(groups).first(groups.size() - 1))
      group.odd = true;
  return groups;
}

std::string processes_label(const std::vector<ProcessStacks>& processes,
                            const std::vector<std::size_t>& which) {
  std::vector<Rank> ranks;
  for (const std::size_t i : which)
    if (processes[i].rank >= 0)
      ranks.push_back(Rank{processes[i].rank});
  if (ranks.size() == which.size()) {
    std::ranges::sort(ranks);
    return ranks_label(ranks);
  }
  return which.size() == 1 ? processes[which[0]].name()
                           : fmt::format("{} processes", which.size());
}

std::vector<StackTreeLine> stack_tree(const std::vector<StackGroup>& groups) {
  struct Branch {
    GroupList groups;  // alike in their outermost `frames` frames
    std::size_t frames = 0;
    std::size_t depth = 0;
    bool alone = false;  // nobody took another branch
  };
  std::vector<StackTreeLine> lines;
  GroupList all;
  for (const StackGroup& group : groups)
    all.push_back(&group);
  std::vector<Branch> open = {{std::move(all)}};
  while (!open.empty()) {
    const Branch branch = std::move(open.back());
    open.pop_back();
    if (branch.frames > 0) {
      StackTreeLine& line = lines.emplace_back();
      line.depth = branch.depth;
      line.frame = frame_at(*branch.groups.front(), branch.frames - 1);
      line.frame.locals.clear();
      if (!branch.alone)
        line.processes = members_of(branch.groups);
    }
    std::vector<GroupList> below = branches_of(branch.groups, branch.frames);
    const bool alone =
        below.size() == 1 && below[0].size() == branch.groups.size();
    for (auto one = below.rbegin(); one != below.rend(); ++one)
      open.push_back(
          {.groups = std::move(*one),
           .frames = branch.frames + 1,
           .depth = branch.depth + (alone || branch.frames == 0 ? 0 : 1),
           .alone = alone && branch.frames > 0});
  }
  return lines;
}

}  // namespace postflight
