#include "profile/log/summary.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace postflight {
namespace {

// The functions that frames belong to.
struct Functions {
  std::vector<FunctionTime> times;
  std::vector<std::uint32_t> of_frame;

  explicit Functions(const Profile& profile) {
    std::map<std::tuple<FrameKind, std::uint32_t, std::uint32_t>, std::uint32_t>
        numbers;
    for (const ProfileFrame& frame : profile.frames) {
      const auto [known, fresh] =
          numbers.try_emplace({frame.kind, frame.name, frame.file},
                              static_cast<std::uint32_t>(times.size()));
      if (fresh)
        times.push_back(
            {.kind = frame.kind, .name = frame.name, .file = frame.file});
      of_frame.push_back(known->second);
    }
  }
};

void add_functions(const Profile& profile, const std::vector<Spent>& by_stack,
                   ProfileSummary& summary) {
  Functions functions(profile);
  // The last stack counted for each function, so that recursion counts once.
  std::vector<std::uint32_t> counted(functions.times.size(), 0);
  std::vector<std::uint64_t> self_of_frame(profile.frames.size(), 0);
  std::vector<std::uint64_t> total_of_frame(profile.frames.size(), 0);
  for (std::uint32_t stack = 1; stack < by_stack.size(); ++stack) {
    const Spent& spent = by_stack[stack];
    if (spent.samples == 0)
      continue;
    const std::uint32_t leaf = profile.stacks[stack].frame;
    functions.times[functions.of_frame[leaf]].self.add(spent);
    self_of_frame[leaf] += spent.ns;
    for (std::uint32_t node = stack; node != 0;
         node = profile.stacks[node].parent) {
      const std::uint32_t frame = profile.stacks[node].frame;
      const std::uint32_t function = functions.of_frame[frame];
      if (std::exchange(counted[function], stack) == stack)
        continue;
      functions.times[function].total.add(spent);
      total_of_frame[frame] += spent.ns;
    }
  }
  // The hottest line: by self time, or by total time if there is none.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> best(
      functions.times.size());
  for (std::size_t frame = 0; frame < profile.frames.size(); ++frame) {
    const std::uint32_t function = functions.of_frame[frame];
    const std::pair here = {self_of_frame[frame], total_of_frame[frame]};
    if (here > best[function]) {
      best[function] = here;
      functions.times[function].line = profile.frames[frame].line;
    }
  }
  std::erase_if(functions.times, [](const FunctionTime& function) {
    return function.total.samples == 0;
  });
  std::ranges::stable_sort(
      functions.times, std::greater<>(), [](const FunctionTime& function) {
        return std::pair(function.self.ns, function.total.ns);
      });
  summary.functions = std::move(functions.times);
}

}  // namespace

ProfileSummary summarise(const Profile& profile) {
  ProfileSummary summary;
  std::vector<Spent> by_stack(profile.stacks.size());
  std::vector<Spent> by_phase(profile.phases.size());
  std::map<std::int32_t, Spent> by_rank;
  std::map<std::int32_t, std::set<std::uint32_t>> threads;
  for (const ProfileSample& sample : profile.samples) {
    const Spent spent = {sample.weight_ns, 1, sample.system_ns,
                         sample.flags.waiting ? sample.weight_ns : 0};
    summary.spent.add(spent);
    if (sample.flags.waiting)
      summary.waiting.add(spent);
    by_stack[sample.stack].add(spent);
    by_phase[sample.phase].add(spent);
    const std::int32_t rank = profile.threads[sample.thread].rank;
    by_rank[rank].add(spent);
    threads[rank].insert(sample.thread);
  }
  add_functions(profile, by_stack, summary);
  for (std::uint32_t phase = 0; phase < by_phase.size(); ++phase)
    if (by_phase[phase].samples != 0)
      summary.phases.push_back({phase, by_phase[phase]});
  std::ranges::stable_sort(
      summary.phases, std::greater<>(),
      [](const PhaseTime& phase) { return phase.spent.ns; });
  for (const auto& [rank, spent] : by_rank)
    summary.ranks.push_back({rank, threads[rank].size(), spent});
  return summary;
}

}  // namespace postflight
