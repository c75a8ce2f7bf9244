#include "flight/classic/calls.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "flight/classic/text.h"

namespace postflight {
namespace {

using enum OperationKind;

// The operations whose one side is as large as the other times the group.
constexpr std::array<std::string_view, 3> kGathers = {
    "all_gather", "_all_gather_base", "all_gather_into_tensor_coalesced"};
constexpr std::array<std::string_view, 3> kScatters = {
    "reduce_scatter", "_reduce_scatter_base",
    "reduce_scatter_tensor_coalesced"};

std::int64_t saturating(__int128 value) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
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

std::int64_t total(const Tables& tables, SizesId sizes) {
  std::int64_t sum = 0;
  for (const std::span<const std::int64_t> shape : tables.shapes(sizes))
    sum = saturating(__int128{sum} + numel(shape));
  return sum;
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

// Numbers things from 1 on, equal ones alike.
template <class T>
class Numbers {
 public:
  std::uint32_t of(const T& thing) {
    return numbers_
        .try_emplace(thing, static_cast<std::uint32_t>(numbers_.size() + 1))
        .first->second;
  }

 private:
  std::map<T, std::uint32_t> numbers_;
};

// Which sides of a call all ranks must agree on. Of scatter and gather only
// the root has both sides, and NCCL records a scatter's sides swapped.
struct Sides {
  bool inputs = true;
  bool outputs = true;
};

Sides compared_sides(const Operation& operation) {
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

bool is_rooted(OperationKind kind) {
  return kind == kBroadcast || kind == kReduce || kind == kGather ||
         kind == kScatter;
}

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

ClassicCalls::ClassicCalls(const Job& job) : job_(job) {
  const Tables& tables = job.tables;
  Numbers<std::string_view> types;
  Numbers<std::vector<TextId>> dtype_sets;
  const auto dtypes = [&](DtypesId id, SizesId sizes) -> std::uint32_t {
    if (!has_dimensions(tables, sizes) || is_placeholder(tables, sizes))
      return 0;
    const std::span<const TextId> names = tables.dtypes(id);
    std::vector<TextId> set(names.begin(), names.end());
    std::ranges::sort(set);
    set.erase(std::unique(set.begin(), set.end()), set.end());
    return dtype_sets.of(set);
  };

  facts_.reserve(tables.call_count());
  for (std::uint32_t i = 0; i < tables.call_count(); ++i) {
    const Call& call = tables.call({i});
    const Operation operation = job.operation(call);
    const Sides sides = compared_sides(operation);
    ClassicCallFacts facts = {.key = {.type = types.of(operation.name)},
                              .kind = operation.kind,
                              .rooted = is_rooted(operation.kind),
                              .gloo = operation.backend == "gloo",
                              .point_to_point = operation.point_to_point(),
                              .source = operation.source,
                              .destination = operation.destination};
    const bool any_size = operation.kind == kAllToAll;
    if (sides.inputs)
      facts.key.inputs = call.inputs;
    if (sides.outputs)
      facts.key.outputs = call.outputs;
    if ((sides.inputs || any_size) && operation.kind != kBroadcast)
      facts.key.input_dtypes = dtypes(call.input_dtypes, call.inputs);
    if (sides.outputs || any_size)
      facts.key.output_dtypes = dtypes(call.output_dtypes, call.outputs);
    facts_.push_back(facts);
  }
}

ClassicCallDifference ClassicCalls::difference(CallId expected_id,
                                               CallId found_id) const {
  const Tables& tables = job_.tables;
  const Call& expected = tables.call(expected_id);
  const Call& found = tables.call(found_id);
  const ClassicCallKey& a = facts(expected_id).key;
  const ClassicCallKey& b = facts(found_id).key;
  if (a.type != b.type)
    return {
        ClassicMismatch::kType,
        fmt::format("Expected collective type: '{}' does not match found "
                    "collective type: '{}'",
                    job_.operation(expected).name, job_.operation(found).name)};
  if (a.inputs != b.inputs)
    return {ClassicMismatch::kSize,
            fmt::format("Expected input sizes: '{}' does not match found input "
                        "sizes: '{}'",
                        sizes_text(tables, expected.inputs),
                        sizes_text(tables, found.inputs))};
  if (a.outputs != b.outputs)
    return {ClassicMismatch::kSize,
            fmt::format("Expected output sizes: '{}' does not match found "
                        "output sizes: '{}'",
                        sizes_text(tables, expected.outputs),
                        sizes_text(tables, found.outputs))};
  return {ClassicMismatch::kDtype,
          fmt::format("Expected dtypes: '{}' does not match found dtype: "
                      "'{}/{}/{}'",
                      dtype_set_text(tables, expected.input_dtypes),
                      dtype_set_text(tables, expected.output_dtypes),
                      dtype_set_text(tables, found.input_dtypes),
                      dtype_set_text(tables, found.output_dtypes))};
}

std::optional<ClassicCallDifference> ClassicCalls::contradiction(
    CallId id, std::size_t members) const {
  const Call& call = job_.tables.call(id);
  const std::string_view name = job_.operation(call).name;
  const bool gathers = is_one_of(kGathers, name);
  if ((!gathers && !is_one_of(kScatters, name)) ||
      is_placeholder(job_.tables, call.inputs) ||
      is_placeholder(job_.tables, call.outputs))
    return std::nullopt;
  const std::int64_t inputs = input_numel(id);
  const std::int64_t outputs = output_numel(id);
  const auto times = [&](std::int64_t count) {
    return saturating(__int128{count} * static_cast<std::int64_t>(members));
  };
  if (gathers ? outputs == times(inputs) : inputs == times(outputs))
    return std::nullopt;
  return ClassicCallDifference{
      ClassicMismatch::kSize,
      gathers ? fmt::format("Found input numel '{} * pg size {}' does not "
                            "match output numel '{}'",
                            inputs, members, outputs)
              : fmt::format("Found input numel '{}' does not match output "
                            "numel '{} * pg size {}'",
                            inputs, outputs, members)};
}

bool ClassicCalls::same_message(CallId send, CallId receive) const {
  return job_.tables.call(send).inputs == job_.tables.call(receive).outputs;
}

std::int64_t ClassicCalls::input_numel(CallId id) const {
  return total(job_.tables, job_.tables.call(id).inputs);
}

std::int64_t ClassicCalls::output_numel(CallId id) const {
  return total(job_.tables, job_.tables.call(id).outputs);
}

}  // namespace postflight
