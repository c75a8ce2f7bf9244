#include "flight/model/entry_filter.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/glob.h"

namespace postflight {
namespace {

bool any_matches(const std::vector<std::string>& patterns,
                 std::string_view first, std::string_view second) {
  return patterns.empty() ||
         std::ranges::any_of(patterns, [&](const std::string& pattern) {
           return glob_matches(pattern, first) || glob_matches(pattern, second);
         });
}

}  // namespace

EntryFilter::EntryFilter(const Job& job, EntryFilterOptions options)
    : options_(std::move(options)) {
  for (const Group& group : job.groups)
    groups_.push_back(any_matches(options_.groups, job.text(group.name),
                                  job.text(group.description)));
  for (std::uint32_t id = 0; id < job.tables.call_count(); ++id) {
    const Call& call = job.tables.call({id});
    const bool used = call.group.value < groups_.size();
    calls_.push_back(used && groups_[call.group.value] &&
                     any_matches(options_.operations, job.text(call.name),
                                 job.operation(call).name));
  }
  for (const State state : options_.states)
    states_ |= 1U << static_cast<unsigned>(state);
  if (options_.states.empty())
    states_ = ~0U;
}

}  // namespace postflight
