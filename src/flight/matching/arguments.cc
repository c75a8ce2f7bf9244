#include "flight/matching/arguments.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>

namespace postflight {
namespace {

std::int64_t elements(std::span<const std::int64_t> shape) {
  std::int64_t product = 1;
  for (const std::int64_t dimension : shape)
    if (__builtin_mul_overflow(product, dimension, &product))
      return -1;
  return product;
}

// Elements of each tensor.
std::vector<std::int64_t> elements_of(const Job& job, SizesId sizes) {
  std::vector<std::int64_t> counts;
  for (const auto shape : job.tables.shapes(sizes))
    counts.push_back(elements(shape));
  return counts;
}

std::int64_t total(const std::vector<std::int64_t>& counts) {
  std::int64_t sum = 0;
  for (const std::int64_t count : counts)
    if (__builtin_add_overflow(sum, count, &sum))
      return -1;
  return sum;
}

std::string shapes_text(const Job& job, SizesId sizes) {
  std::vector<std::string> shapes;
  for (const auto shape : job.tables.shapes(sizes))
    shapes.push_back(fmt::format("[{}]", fmt::join(shape, ", ")));
  if (shapes.size() > 4) {
    shapes[3] = fmt::format("{} more", shapes.size() - 3);
    shapes.resize(4);
  }
  return fmt::format("{}", fmt::join(shapes, ", "));
}

std::string dtypes_text(const Job& job, DtypesId dtypes) {
  std::vector<std::string_view> names;
  for (const TextId name : job.tables.dtypes(dtypes))
    if (std::ranges::find(names, job.text(name)) == names.end())
      names.push_back(job.text(name));
  return fmt::format("{}", fmt::join(names, ", "));
}

// Ranks by what they passed, in one respect.
template <class Key>
class Vote {
 public:
  void cast(Key key, const Passed& passed) {
    sides_[std::move(key)].push_back(passed);
  }
  bool unanimous() const { return sides_.size() < 2; }

  // The ranks outside the largest side.
  Disagreement count(CallArgument argument) const {
    const auto& [key, most] = *std::ranges::max_element(
        sides_, {}, [](const auto& side) { return side.second.size(); });
    Disagreement found = {.argument = argument,
                          .minority = {},
                          .majority_call = most[0].call,
                          .minority_call = {},
                          .decided = true,
                          .difference = {}};
    bool tied = false;
    for (const auto& [other, side] : sides_) {
      if (&side == &most)
        continue;
      tied |= side.size() == most.size();
      if (found.minority.empty())
        found.minority_call = side[0].call;
      for (const Passed& passed : side)
        found.minority.push_back(passed.rank);
    }
    found.decided = !tied;
    if (tied)  // nobody can say who is wrong
      for (const Passed& passed : most)
        found.minority.push_back(passed.rank);
    std::ranges::sort(found.minority);
    return found;
  }

 private:
  std::map<Key, std::vector<Passed>> sides_;
};

std::optional<Disagreement> compare_types(const Job& job,
                                          std::span<const Passed> passed) {
  Vote<std::string_view> vote;
  for (const Passed& one : passed)
    vote.cast(job.operation(job.tables.call(one.call)).name, one);
  if (vote.unanimous())
    return std::nullopt;
  Disagreement found = vote.count(CallArgument::kType);
  found.difference =
      fmt::format("called {} instead of",
                  job.operation(job.tables.call(found.minority_call)).name);
  return found;
}

std::string size_difference(const Job& job, const Disagreement& found) {
  const Call& few = job.tables.call(found.minority_call);
  const Call& many = job.tables.call(found.majority_call);
  if (few.inputs != many.inputs)
    return fmt::format("passed input {} instead of {} to",
                       shapes_text(job, few.inputs),
                       shapes_text(job, many.inputs));
  return fmt::format("passed output {} instead of {} to",
                     shapes_text(job, few.outputs),
                     shapes_text(job, many.outputs));
}

std::optional<Disagreement> compare_both_sides(const Job& job,
                                               std::span<const Passed> passed) {
  Vote<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>> vote;
  for (const Passed& one : passed) {
    const Call& call = job.tables.call(one.call);
    vote.cast({elements_of(job, call.inputs), elements_of(job, call.outputs)},
              one);
  }
  if (vote.unanimous())
    return std::nullopt;
  Disagreement found = vote.count(CallArgument::kSize);
  found.difference = size_difference(job, found);
  return found;
}

// A gather of uneven parts is legal as a list of tensors; only the whole of the
// output has to be the same everywhere.
std::optional<Disagreement> compare_gathered(const Job& job,
                                             std::span<const Passed> passed) {
  const bool list = std::ranges::any_of(passed, [&](const Passed& one) {
    const Call& call = job.tables.call(one.call);
    return job.tables.shapes(call.inputs).size() !=
           job.tables.shapes(call.outputs).size();
  });
  if (!list)
    return compare_both_sides(job, passed);
  Vote<std::int64_t> vote;
  for (const Passed& one : passed) {
    const Call& call = job.tables.call(one.call);
    const SizesId whole = job.operation(call).kind == OperationKind::kAllGather
                              ? call.outputs
                              : call.inputs;
    vote.cast(total(elements_of(job, whole)), one);
  }
  if (vote.unanimous())
    return std::nullopt;
  Disagreement found = vote.count(CallArgument::kSize);
  found.difference = size_difference(job, found);
  return found;
}

// What all ranks send is what all receive. If not, the rank whose own two
// sides differ by just what is missing is at fault, or the odd one out.
std::optional<Disagreement> compare_exchanged(const Job& job,
                                              std::span<const Passed> passed,
                                              std::size_t group_size) {
  if (passed.size() < group_size)
    return std::nullopt;  // the others may make up for it
  std::int64_t difference = 0;
  std::vector<std::int64_t> own;
  for (const Passed& one : passed) {
    const Call& call = job.tables.call(one.call);
    const std::int64_t sent = total(elements_of(job, call.inputs));
    const std::int64_t received = total(elements_of(job, call.outputs));
    if (sent < 0 || received < 0)
      return std::nullopt;
    own.push_back(sent - received);
    if (__builtin_add_overflow(difference, own.back(), &difference))
      return std::nullopt;
  }
  if (difference == 0)
    return std::nullopt;
  Disagreement found = {.argument = CallArgument::kSize,
                        .minority = {},
                        .majority_call = passed[0].call,
                        .minority_call = passed[0].call,
                        .decided = true,
                        .difference = {}};
  for (std::size_t i = 0; i < passed.size(); ++i) {
    if (own[i] == difference) {
      found.minority.push_back(passed[i].rank);
      found.minority_call = passed[i].call;
    } else {
      found.majority_call = passed[i].call;
    }
  }
  found.decided = found.minority.size() == 1;
  if (found.minority.empty())
    for (const Passed& one : passed)
      found.minority.push_back(one.rank);
  found.difference =
      difference > 0
          ? fmt::format("sent {} elements that nobody expects in", difference)
          : fmt::format("expects {} elements that nobody sends in",
                        -difference);
  return found;
}

// Of a scatter or gather, only the root has the list of all parts. Recorders
// put it on either side, and nothing or an empty tensor elsewhere.
std::optional<Disagreement> compare_rooted(const Job& job,
                                           std::span<const Passed> passed,
                                           std::size_t group_size) {
  const auto parts = [&](const Call& call) {
    return std::max(job.tables.shapes(call.inputs).size(),
                    job.tables.shapes(call.outputs).size());
  };
  if (group_size > 1) {
    std::vector<Passed> roots;
    for (const Passed& one : passed)
      if (parts(job.tables.call(one.call)) == group_size)
        roots.push_back(one);
    // The first rank is the usual root; a second one is wrong.
    if (roots.size() > 1) {
      Disagreement found = {.argument = CallArgument::kSize,
                            .minority = {},
                            .majority_call = roots[0].call,
                            .minority_call = roots[1].call,
                            .decided = roots.size() == 2,
                            .difference = "took itself for the root of"};
      for (std::size_t i = 1; i < roots.size(); ++i)
        found.minority.push_back(roots[i].rank);
      return found;
    }
  }
  // Each rank's own part: the side with one tensor that is not empty.
  Vote<std::int64_t> vote;
  for (const Passed& one : passed) {
    const Call& call = job.tables.call(one.call);
    const std::vector<std::int64_t> in = elements_of(job, call.inputs);
    const std::vector<std::int64_t> out = elements_of(job, call.outputs);
    if (in.size() == 1 && in[0] > 0)
      vote.cast(in[0], one);
    else if (out.size() == 1 && out[0] > 0)
      vote.cast(out[0], one);
  }
  if (vote.unanimous())
    return std::nullopt;
  Disagreement found = vote.count(CallArgument::kSize);
  found.difference = size_difference(job, found);
  return found;
}

std::optional<Disagreement> compare_sizes(const Job& job,
                                          std::span<const Passed> passed,
                                          std::size_t group_size) {
  using enum OperationKind;
  switch (job.operation(job.tables.call(passed[0].call)).kind) {
    case kAllToAll:
      return compare_exchanged(job, passed, group_size);
    case kGather:
    case kScatter:
      return compare_rooted(job, passed, group_size);
    case kAllGather:
    case kReduceScatter:
      return compare_gathered(job, passed);
    case kBarrier:
    case kCoalesced:
    case kOther:
    case kSend:
    case kReceive:
      return std::nullopt;
    case kBroadcast:
    case kReduce:
    case kAllReduce:
      return compare_both_sides(job, passed);
  }
  return std::nullopt;
}

// Tensors without elements have a dtype that means nothing.
std::optional<Disagreement> compare_dtypes(const Job& job,
                                           std::span<const Passed> passed) {
  Vote<std::string> vote;
  for (const Passed& one : passed) {
    const Call& call = job.tables.call(one.call);
    if (total(elements_of(job, call.inputs)) > 0 &&
        call.input_dtypes != DtypesId{})
      vote.cast(dtypes_text(job, call.input_dtypes), one);
  }
  if (vote.unanimous())
    return std::nullopt;
  Disagreement found = vote.count(CallArgument::kDtype);
  found.difference = fmt::format(
      "passed {} instead of {} to",
      dtypes_text(job, job.tables.call(found.minority_call).input_dtypes),
      dtypes_text(job, job.tables.call(found.majority_call).input_dtypes));
  return found;
}

}  // namespace

std::optional<Disagreement> compare_arguments(const Job& job,
                                              std::span<const Passed> passed,
                                              std::size_t group_size) {
  if (passed.size() < 2)
    return std::nullopt;
  if (std::optional<Disagreement> types = compare_types(job, passed))
    return types;
  if (std::optional<Disagreement> sizes =
          compare_sizes(job, passed, group_size))
    return sizes;
  return compare_dtypes(job, passed);
}

}  // namespace postflight
