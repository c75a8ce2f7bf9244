// What the ranks of a collective must agree on depends on the operation. Types
// come first: calls of different operations cannot meet. Then sizes, counted in
// elements, for that is what a backend sends: [2, 3] and [6] work together.
// An all_reduce needs the same count everywhere; a gather of a list may have
// uneven parts as long as the whole is the same; an all_to_all must receive in
// total what is sent; of a scatter or gather only the root has all parts, and
// recorders put them on either side, as a list or as one stacked tensor. Then
// dtypes, of tensors that have elements.
//
// torchfrtrace compares the recorded sizes as they are. Where only that differs
// the disagreement is recorded, but does not block.
#include "flight/matching/calls.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "flight/matching/entry_role.h"
#include "flight/model/interner.h"

namespace postflight {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

std::int64_t saturating(__int128 value) {
  return value > kMost ? kMost
         : value < 0   ? 0
                       : static_cast<std::int64_t>(value);
}

std::int64_t numel(std::span<const std::int64_t> shape) {
  std::int64_t product = 1;
  for (const std::int64_t size : shape)
    product = saturating(__int128{product} * std::max<std::int64_t>(size, 0));
  return product;
}

std::int64_t total_numel(const Tables& tables, SizesId sizes) {
  std::int64_t sum = 0;
  for (const std::span<const std::int64_t> shape : tables.shapes(sizes))
    sum = saturating(__int128{sum} + numel(shape));
  return sum;
}

std::vector<std::int64_t> numel_of_each(const Tables& tables, SizesId sizes) {
  std::vector<std::int64_t> counts;
  for (const auto shape : tables.shapes(sizes))
    counts.push_back(numel(shape));
  return counts;
}

// Whether a rank that is not the root records this in place of a tensor: no
// tensor at all, or one of no elements.
bool is_placeholder(const Tables& tables, SizesId sizes) {
  const std::span<const std::int64_t> encoded = tables.encoded_sizes(sizes);
  return encoded.empty() ||
         (encoded.size() == 2 && encoded[0] == 1 && encoded[1] == 0);
}

// torchfrtrace compares types only where the first tensor has dimensions.
bool has_dimensions(const Tables& tables, SizesId sizes) {
  const std::span<const std::int64_t> encoded = tables.encoded_sizes(sizes);
  return !encoded.empty() && encoded[0] > 0;
}

std::string shapes_text(const Tables& tables, SizesId sizes) {
  std::vector<std::string> shapes;
  for (const auto shape : tables.shapes(sizes))
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
  const Key& winner() const { return winning_side()->first; }

  Disagreement count(Difference difference) const {
    const auto winning = winning_side();
    const std::vector<Passed>& most = winning->second;
    Disagreement found;
    found.difference = difference;
    found.majority_call = most[0].call;
    for (const auto& [other, side] : sides_) {
      if (other == winning->first)
        continue;
      if (side.size() == most.size())
        found.decided = false;
      if (found.differing.empty())
        found.minority_call = side[0].call;
      for (const Passed& passed : side)
        found.differing.push_back(passed.rank);
    }
    std::ranges::sort(found.differing);
    found.suspects = found.differing;
    if (!found.decided)
      for (const Passed& passed : most)
        found.suspects.push_back(passed.rank);
    std::ranges::sort(found.suspects);
    return found;
  }

 private:
  using Sides = std::map<Key, std::vector<Passed>>;

  typename Sides::const_iterator winning_side() const {
    return std::ranges::max_element(sides_, [](const auto& a, const auto& b) {
      return std::pair(a.second.size(), -a.second[0].rank.value) <
             std::pair(b.second.size(), -b.second[0].rank.value);
    });
  }

  Sides sides_;
};

// Which sides of a call torchfrtrace compares. Of scatter and gather only the
// root has both, and NCCL records a scatter's sides swapped.
struct RecordedSides {
  bool inputs = true;
  bool outputs = true;
};

RecordedSides recorded_sides(const Operation& operation) {
  using enum OperationKind;
  switch (operation.kind) {
    case kAllToAll:
    case kCoalesced:
    case kSend:
    case kReceive:
      return {false, false};
    case kGather:
      return {true, false};
    case kScatter: {
      const bool swapped =
          operation.backend == "nccl" || operation.backend == "xccl";
      return {swapped, !swapped};
    }
    default:
      return {};
  }
}

// Before version 2.4 the sizes of all_to_all are not recorded.
bool has_exchanged_sizes(std::string_view version) {
  const char* const end = version.data() + version.size();
  int major = 0;
  int minor = 0;
  const auto [dot, error] = std::from_chars(version.data(), end, major);
  if (error != std::errc() || dot == end ||
      std::from_chars(dot + 1, end, minor).ec != std::errc())
    return true;
  return major > 2 || minor > 3;
}

// The operations whose one side is as large as the other times the group.
constexpr std::array<std::string_view, 3> kGathers = {
    "all_gather", "_all_gather_base", "all_gather_into_tensor_coalesced"};
constexpr std::array<std::string_view, 3> kScatters = {
    "reduce_scatter", "_reduce_scatter_base",
    "reduce_scatter_tensor_coalesced"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

Calls::Calls(const Job& job) : job_(job), operations_(operations_of(job)) {
  const Tables& tables = job.tables;
  Interner<std::uint32_t> meanings;
  Interner<std::uint32_t> records;
  std::map<std::set<TextId>, std::uint32_t> dtype_sets;
  std::map<std::string_view, std::uint32_t> names;
  const auto dtypes = [&](DtypesId id, SizesId sizes) -> std::uint32_t {
    if (!has_dimensions(tables, sizes) || is_placeholder(tables, sizes))
      return 0;
    const std::span<const TextId> all = tables.dtypes(id);
    return dtype_sets
        .try_emplace(std::set<TextId>(all.begin(), all.end()),
                     static_cast<std::uint32_t>(dtype_sets.size() + 1))
        .first->second;
  };
  for (std::uint32_t i = 0; i < operations_.size(); ++i) {
    const Call& call = tables.call({i});
    const Operation& operation = operations_[i];
    const std::array<std::uint32_t, 5> meaning = {
        call.name.value, call.inputs.value, call.outputs.value,
        call.input_dtypes.value, call.output_dtypes.value};
    meanings_.push_back(meanings.intern(meaning));
    const RecordedSides sides = recorded_sides(operation);
    const bool any_size = operation.kind == OperationKind::kAllToAll;
    const std::uint32_t name =
        names
            .try_emplace(operation.name,
                         static_cast<std::uint32_t>(names.size()))
            .first->second;
    const std::array<std::uint32_t, 5> record = {
        name, sides.inputs ? call.inputs.value : 0,
        sides.outputs ? call.outputs.value : 0,
        (sides.inputs || any_size) &&
                operation.kind != OperationKind::kBroadcast
            ? dtypes(call.input_dtypes, call.inputs)
            : 0,
        sides.outputs || any_size ? dtypes(call.output_dtypes, call.outputs)
                                  : 0};
    records_.push_back(records.intern(record));
    suspicious_.push_back((any_size && input_numel({i}) != output_numel({i})) ||
                                  contradicts_itself({i})
                              ? 1
                              : 0);
  }
}

std::int64_t Calls::input_numel(CallId id) const {
  return total_numel(job_.tables, job_.tables.call(id).inputs);
}

std::int64_t Calls::output_numel(CallId id) const {
  return total_numel(job_.tables, job_.tables.call(id).outputs);
}

bool Calls::contradicts_itself(CallId id) const {
  const Call& call = job_.tables.call(id);
  const std::string_view name = operation(id).name;
  const bool gathers = is_one_of(kGathers, name);
  if ((!gathers && !is_one_of(kScatters, name)) ||
      call.group.value >= job_.groups.size() ||
      is_placeholder(job_.tables, call.inputs) ||
      is_placeholder(job_.tables, call.outputs))
    return false;
  const auto members =
      static_cast<std::int64_t>(job_.group(call.group).members.size());
  const std::int64_t part = gathers ? input_numel(id) : output_numel(id);
  const std::int64_t whole = gathers ? output_numel(id) : input_numel(id);
  return whole != saturating(__int128{part} * members);
}

std::optional<Disagreement> Calls::compare(std::span<const Passed> passed,
                                           std::size_t members) const {
  if (passed.empty())
    return std::nullopt;
  if (std::optional<Disagreement> types = compare_types(passed))
    return types;
  if (std::optional<Disagreement> sizes = compare_sizes(passed, members))
    return sizes;
  if (std::optional<Disagreement> dtypes = compare_dtypes(passed))
    return dtypes;
  return compare_records(passed);
}

std::optional<Disagreement> Calls::compare(const Passed& send,
                                           const Passed& receive) const {
  const Call& sent = job_.tables.call(send.call);
  const Call& received = job_.tables.call(receive.call);
  Disagreement found;
  if (sent.inputs != received.outputs) {
    found.difference = Difference::kSizes;
    found.blocks = input_numel(send.call) != output_numel(receive.call);
  } else if (sent.input_dtypes != received.output_dtypes) {
    found.difference = Difference::kDtypes;
  } else {
    return std::nullopt;
  }
  found.decided = false;
  found.suspects = {send.rank, receive.rank};
  std::ranges::sort(found.suspects);
  found.majority_call = send.call;
  found.minority_call = receive.call;
  found.text = found.difference == Difference::kSizes
                   ? fmt::format("{} sent, {} expected",
                                 shapes_text(job_.tables, sent.inputs),
                                 shapes_text(job_.tables, received.outputs))
                   : fmt::format("{} sent, {} expected",
                                 dtypes_text(job_, sent.input_dtypes),
                                 dtypes_text(job_, received.output_dtypes));
  return found;
}

std::optional<Disagreement> Calls::compare_types(
    std::span<const Passed> passed) const {
  Vote<std::string_view> vote;
  for (const Passed& one : passed)
    vote.cast(operation(one.call).name, one);
  if (vote.unanimous())
    return std::nullopt;
  Disagreement found = vote.count(Difference::kOperation);
  found.text =
      fmt::format("called {} instead of", operation(found.minority_call).name);
  return found;
}

std::string Calls::size_text(const Disagreement& found) const {
  const Call& few = job_.tables.call(found.minority_call);
  const Call& many = job_.tables.call(found.majority_call);
  const bool inputs = few.inputs != many.inputs;
  return fmt::format(
      "passed {} {} instead of {} to", inputs ? "input" : "output",
      shapes_text(job_.tables, inputs ? few.inputs : few.outputs),
      shapes_text(job_.tables, inputs ? many.inputs : many.outputs));
}

template <class Vote>
std::optional<Disagreement> Calls::settle_sizes(const Vote& vote) const {
  if (vote.unanimous())
    return std::nullopt;
  Disagreement found = vote.count(Difference::kSizes);
  found.text = size_text(found);
  return found;
}

std::optional<Disagreement> Calls::compare_both_sides(
    std::span<const Passed> passed) const {
  Vote<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>> vote;
  for (const Passed& one : passed) {
    const Call& call = job_.tables.call(one.call);
    vote.cast({numel_of_each(job_.tables, call.inputs),
               numel_of_each(job_.tables, call.outputs)},
              one);
  }
  return settle_sizes(vote);
}

// A gather of uneven parts is legal as a list of tensors; only the whole has to
// be the same everywhere.
std::optional<Disagreement> Calls::compare_gathered(
    std::span<const Passed> passed) const {
  const bool list = std::ranges::any_of(passed, [&](const Passed& one) {
    const Call& call = job_.tables.call(one.call);
    return job_.tables.shapes(call.inputs).size() !=
           job_.tables.shapes(call.outputs).size();
  });
  if (!list)
    return compare_both_sides(passed);
  Vote<std::int64_t> vote;
  for (const Passed& one : passed)
    vote.cast(operation(one.call).kind == OperationKind::kAllGather
                  ? output_numel(one.call)
                  : input_numel(one.call),
              one);
  return settle_sizes(vote);
}

// What all ranks send is what all receive. If not, the rank whose own two
// sides differ by just what is missing is at fault.
std::optional<Disagreement> Calls::compare_exchanged(
    std::span<const Passed> passed, std::size_t members) const {
  if (passed.size() < members)
    return std::nullopt;  // the others may make up for it
  __int128 difference = 0;
  for (const Passed& one : passed) {
    const std::int64_t sent = input_numel(one.call);
    const std::int64_t received = output_numel(one.call);
    const RankDump* const dump = job_.find(one.rank);
    if (sent == kMost || received == kMost ||
        (dump != nullptr && !has_exchanged_sizes(job_.text(dump->version))))
      return std::nullopt;
    difference += __int128{sent} - received;
  }
  if (difference == 0)
    return std::nullopt;
  Disagreement found;
  found.difference = Difference::kSizes;
  found.majority_call = found.minority_call = passed[0].call;
  for (const Passed& one : passed)
    if (__int128{input_numel(one.call)} - output_numel(one.call) ==
        difference) {
      found.suspects.push_back(one.rank);
      found.minority_call = one.call;
    } else {
      found.majority_call = one.call;
    }
  found.decided = found.suspects.size() == 1;
  if (found.decided)
    found.differing = found.suspects;
  if (found.suspects.empty())
    for (const Passed& one : passed)
      found.suspects.push_back(one.rank);
  found.text = difference > 0
                   ? fmt::format("sent {} elements that nobody expects in",
                                 saturating(difference))
                   : fmt::format("expects {} elements that nobody sends in",
                                 saturating(-difference));
  return found;
}

Calls::Part Calls::part_of(CallId id, std::size_t members) const {
  const auto count = static_cast<std::int64_t>(members);
  const Call& call = job_.tables.call(id);
  const std::size_t tensors = std::max(job_.tables.shapes(call.inputs).size(),
                                       job_.tables.shapes(call.outputs).size());
  const std::int64_t in = input_numel(id);
  const std::int64_t out = output_numel(id);
  const std::int64_t less = std::min(in, out);
  const std::int64_t more = std::max(in, out);
  const bool list = members > 1 && tensors == members;
  if (less == 0)
    return {list && more % count == 0 ? more / count : more, list};
  return {less,
          list || (members > 1 && more / count == less && more % count == 0)};
}

bool Calls::is_root(CallId id, std::size_t members) const {
  const OperationKind kind = operation(id).kind;
  return (kind == OperationKind::kGather || kind == OperationKind::kScatter) &&
         part_of(id, members).root;
}

std::optional<Disagreement> Calls::compare_rooted(
    std::span<const Passed> passed, std::size_t members) const {
  std::vector<Passed> roots;
  Vote<std::int64_t> vote;
  for (const Passed& one : passed) {
    const Part part = part_of(one.call, members);
    if (part.root)
      roots.push_back(one);
    if (part.own > 0)
      vote.cast(part.own, one);
  }
  // Which of them should be the root is not told by their calls.
  if (roots.size() > 1) {
    Disagreement found;
    found.difference = Difference::kSizes;
    found.decided = false;
    found.majority_call = roots[0].call;
    found.minority_call = roots[1].call;
    found.text = "took themselves for the root of";
    for (std::size_t i = 1; i < roots.size(); ++i)
      found.differing.push_back(roots[i].rank);
    std::ranges::sort(found.differing);
    found.suspects = found.differing;
    found.suspects.push_back(roots[0].rank);
    std::ranges::sort(found.suspects);
    return found;
  }
  if (vote.unanimous())
    return std::nullopt;
  Disagreement found = vote.count(Difference::kSizes);
  // A root that records nothing but the stack of all parts.
  if (found.differing.size() == 1 && roots.empty()) {
    const auto odd =
        std::ranges::find(passed, found.differing[0], &Passed::rank);
    if (part_of(odd->call, members).own ==
        saturating(__int128{vote.winner()} *
                   static_cast<std::int64_t>(members)))
      return std::nullopt;
  }
  found.text = size_text(found);
  return found;
}

std::optional<Disagreement> Calls::compare_sizes(std::span<const Passed> passed,
                                                 std::size_t members) const {
  using enum OperationKind;
  switch (operation(passed[0].call).kind) {
    case kAllToAll:
      return compare_exchanged(passed, members);
    case kGather:
    case kScatter:
      return compare_rooted(passed, members);
    case kAllGather:
    case kReduceScatter:
      return compare_gathered(passed);
    case kBarrier:
    case kCoalesced:
    case kOther:
    case kSend:
    case kReceive:
      return std::nullopt;
    case kBroadcast:
    case kReduce:
    case kAllReduce:
      return compare_both_sides(passed);
  }
  return std::nullopt;
}

// Tensors without elements have a dtype that means nothing.
std::optional<Disagreement> Calls::compare_dtypes(
    std::span<const Passed> passed) const {
  Vote<std::string> vote;
  for (const Passed& one : passed) {
    const Call& call = job_.tables.call(one.call);
    if (input_numel(one.call) > 0 && call.input_dtypes != DtypesId{})
      vote.cast(dtypes_text(job_, call.input_dtypes), one);
  }
  if (vote.unanimous())
    return std::nullopt;
  Disagreement found = vote.count(Difference::kDtypes);
  found.text = fmt::format(
      "passed {} instead of {} to",
      dtypes_text(job_, job_.tables.call(found.minority_call).input_dtypes),
      dtypes_text(job_, job_.tables.call(found.majority_call).input_dtypes));
  return found;
}

// What is left: recorded sizes and dtypes that differ where they may.
std::optional<Disagreement> Calls::compare_records(
    std::span<const Passed> passed) const {
  Vote<std::uint32_t> vote;
  for (const Passed& one : passed)
    vote.cast(records_[one.call.value], one);
  if (!vote.unanimous()) {
    Disagreement found = vote.count(Difference::kSizes);
    const Call& few = job_.tables.call(found.minority_call);
    const Call& many = job_.tables.call(found.majority_call);
    const RecordedSides sides = recorded_sides(operation(passed[0].call));
    if (!(sides.inputs && few.inputs != many.inputs) &&
        !(sides.outputs && few.outputs != many.outputs))
      found.difference = Difference::kDtypes;
    found.blocks = false;
    return found;
  }
  const Passed& first = passed[0];
  if (!contradicts_itself(first.call))
    return std::nullopt;
  Disagreement found;
  found.difference = Difference::kSizes;
  found.blocks = false;
  found.decided = false;
  found.majority_call = found.minority_call = first.call;
  for (const Passed& one : passed)
    found.suspects.push_back(one.rank);
  return found;
}

}  // namespace postflight
