#include "checkpoint/comparison/difference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>

#include <fmt/ranges.h>

#include "base/worker_pool.h"
#include "checkpoint/model/value_repr.h"
#include "checkpoint/tensor/digest.h"
#include "checkpoint/tensor/element_reader.h"
#include "checkpoint/tensor/statistics.h"

namespace postflight {
namespace {

constexpr std::size_t kComparedPiece = 1 << 20;

// A float's bits as an integer that grows with the number.
std::optional<std::int64_t> ordered_bits(const Dtype& dtype,
                                         const std::byte* at) {
  std::uint64_t bits = 0;
  if (dtype.numeric != Numeric::kFloat && dtype.numeric != Numeric::kBfloat16 &&
      !is_float8(dtype.numeric))
    return std::nullopt;
  std::memcpy(&bits, at, dtype.size);
  const unsigned width = 8 * dtype.size;
  const std::uint64_t sign = std::uint64_t{1} << (width - 1);
  const auto magnitude = static_cast<std::int64_t>(bits & (sign - 1));
  return (bits & sign) != 0 ? -magnitude : magnitude;
}

std::size_t ulp_class(std::uint64_t distance) {
  return distance < 2     ? 0
         : distance < 4   ? 1
         : distance < 16  ? 2
         : distance < 256 ? 3
                          : 4;
}

class TensorComparison {
 public:
  TensorComparison(const Tensor& before, const Tensor& after,
                   const CompareOptions& options)
      : before_(before), after_(after), options_(options) {}

  void add(Bytes a, Bytes b) {
    const std::size_t count = a.size() / before_.dtype.size;
    const bool same_dtype = before_.dtype == after_.dtype;
    const bool same =
        same_dtype && std::memcmp(a.data(), b.data(), a.size()) == 0;
    found_.elements += count;
    found_.measured = !options_.quick;
    if (options_.quick) {
      if (!same && found_.changed++ == 0)
        found_.first = found_.elements - count;
      return;
    }
    for (std::size_t i = 0; i < count; ++i)
      add_element(a.data() + i * before_.dtype.size,
                  b.data() + i * after_.dtype.size, found_.elements - count + i,
                  same, same_dtype);
  }

  bool is_done() const { return options_.quick && found_.changed > 0; }

  ElementDifference found() {
    if (norm_a_ > 0 && norm_b_ > 0)
      found_.cosine = std::clamp(
          product_ / (std::sqrt(norm_a_) * std::sqrt(norm_b_)), -1.0, 1.0);
    return found_;
  }

 private:
  void add_element(const std::byte* a, const std::byte* b, std::uint64_t index,
                   bool same, bool same_dtype) {
    const auto x = element_value(before_.dtype, a);
    const auto y = element_value(after_.dtype, b);
    const bool finite = x && y && std::isfinite(*x) && std::isfinite(*y);
    if (finite) {
      product_ += *x * *y;
      norm_a_ += *x * *x;
      norm_b_ += *y * *y;
    }
    if (same)
      return;
    const bool equal =
        same_dtype ? std::memcmp(a, b, before_.dtype.size) == 0
                   : x && y && (*x == *y || (std::isnan(*x) && std::isnan(*y)));
    if (equal)
      return;
    if (found_.changed++ == 0)
      found_.first = index;
    if (!finite) {
      found_.beyond += x && y && std::isnan(*x) && std::isnan(*y) ? 0 : 1;
      return;
    }
    const double apart = std::abs(*x - *y);
    found_.max_absolute = std::max(found_.max_absolute, apart);
    if (*x != 0)
      found_.max_relative = std::max(found_.max_relative, apart / std::abs(*x));
    else if (apart > 0)
      found_.max_relative = std::numeric_limits<double>::infinity();
    if (!(apart <= options_.absolute + options_.relative * std::abs(*x)))
      ++found_.beyond;
    // Complex numbers of one magnitude, and the two zeros, have other bits.
    if (apart == 0 && before_.dtype.numeric == Numeric::kComplex)
      ++found_.beyond;
    if (!same_dtype)
      return;
    const auto p = ordered_bits(before_.dtype, a);
    const auto q = ordered_bits(after_.dtype, b);
    if (p && q)
      ++found_.ulps[ulp_class(static_cast<std::uint64_t>(std::abs(*p - *q)))];
  }

  const Tensor& before_;
  const Tensor& after_;
  const CompareOptions& options_;
  ElementDifference found_;
  double product_ = 0;
  double norm_a_ = 0;
  double norm_b_ = 0;
};

Result<ElementDifference> compare_elements(const Checkpoint& before,
                                           const Tensor& a,
                                           const Checkpoint& after,
                                           const Tensor& b,
                                           const CompareOptions& options) {
  TensorComparison comparison(a, b, options);
  if (a.elements() == 0)
    return comparison.found();
  ElementReader from_a(before, a);
  ElementReader from_b(after, b);
  std::vector<std::byte> left;
  std::vector<std::byte> right;
  // Packed elements are compared as bytes.
  const std::uint64_t unit_a = a.dtype.size;
  const std::uint64_t unit_b = b.dtype.size;
  const std::uint64_t units = a.bytes() / unit_a;
  if (b.bytes() / unit_b != units)
    return fail(ErrorKind::kUnsupported, "its elements are packed differently");
  const std::uint64_t step = kComparedPiece / std::max(unit_a, unit_b);
  for (std::uint64_t at = 0; at < units && !comparison.is_done(); at += step) {
    const std::uint64_t count = std::min(step, units - at);
    left.resize(count * unit_a);
    right.resize(count * unit_b);
    TRY(from_a.read(at * unit_a, left));
    TRY(from_b.read(at * unit_b, right));
    comparison.add(left, right);
    if (options.progress)
      options.progress(left.size() + right.size());
  }
  return comparison.found();
}

using Keys = std::map<std::string, std::uint32_t>;

class Comparison {
 public:
  Comparison(const Checkpoint& before, const Checkpoint& after,
             const KeyFilter& filter, const CompareOptions& options)
      : before_(before), after_(after), filter_(filter), options_(options) {}

  Result<CheckpointDifference> run() && {
    const auto [tensors_a, values_a] = keys_of(before_);
    const auto [tensors_b, values_b] = keys_of(after_);
    if (!filter_.picks_all() && tensors_a.empty() && tensors_b.empty() &&
        values_a.empty() && values_b.empty())
      return fail(ErrorKind::kUsage, "no key of either checkpoint matches");
    for (const auto& [key, node] : tensors_a)
      if (!tensors_b.contains(key))
        found_.tensors.push_back(
            {.kind = ChangeKind::kRemoved, .key = key, .before = node});
    for (const auto& [key, node] : tensors_b)
      if (!tensors_a.contains(key))
        found_.tensors.push_back(
            {.kind = ChangeKind::kAdded, .key = key, .after = node});
    TRY(find_moved());
    TRY(compare_common(tensors_a, tensors_b));
    if (options_.values)
      compare_values(values_a, values_b);
    std::ranges::stable_sort(found_.tensors, std::ranges::greater(), size_of);
    return std::move(found_);
  }

 private:
  static double size_of(const TensorChange& change) {
    if (change.elements)
      return change.elements->max_absolute;
    return change.kind == ChangeKind::kMoved
               ? -1
               : std::numeric_limits<double>::infinity();
  }

  static bool has_bytes(const Tensor& tensor) {
    return !tensor.has_parts() && tensor.storage != kNoIndex;
  }

  std::pair<Keys, Keys> keys_of(const Checkpoint& checkpoint) const {
    Keys tensors;
    Keys values;
    const auto count = static_cast<std::uint32_t>(checkpoint.nodes().size());
    for (std::uint32_t node = 0; node < count; ++node) {
      const Tensor* const tensor = checkpoint.tensor_at(node);
      const bool value = checkpoint.nodes()[node].kind == NodeKind::kValue;
      if ((tensor == nullptr || !has_bytes(*tensor)) && !value)
        continue;
      if (!filter_.picks(checkpoint, node))
        continue;
      (value ? values : tensors)[plain_path(checkpoint, node)] = node;
    }
    return {std::move(tensors), std::move(values)};
  }

  const Tensor& tensor(const Checkpoint& checkpoint, std::uint32_t node) const {
    return *checkpoint.tensor_at(node);
  }

  // Digests of the tensors of one kind of change that could be those of the
  // other.
  Result<std::map<std::string, std::size_t>> digests(
      const Checkpoint& checkpoint, std::span<const std::size_t> changes,
      std::uint32_t TensorChange::*node) const {
    std::map<std::string, std::size_t> by_digest;
    std::vector<std::uint32_t> nodes;
    for (const std::size_t i : changes)
      nodes.push_back(found_.tensors[i].*node);
    std::size_t next = 0;
    TRY(digest_tensors(
        checkpoint, nodes,
        [&](std::uint32_t, const Result<std::string>& digest) {
          const std::size_t i = changes[next++];
          const Tensor& its = tensor(checkpoint, found_.tensors[i].*node);
          if (digest)
            by_digest.emplace(fmt::format("{} {} {}", *digest, its.dtype.name,
                                          fmt::join(its.shape, ",")),
                              i);
        },
        {.crc = CrcCheck::kNever}));
    return by_digest;
  }

  Result<> find_moved() {
    std::map<std::string, std::vector<std::size_t>> gone;
    std::map<std::string, std::vector<std::size_t>> come;
    for (std::size_t i = 0; i < found_.tensors.size(); ++i) {
      const TensorChange& change = found_.tensors[i];
      const bool added = change.kind == ChangeKind::kAdded;
      const Tensor& its =
          added ? tensor(after_, change.after) : tensor(before_, change.before);
      if (its.readable() && its.bytes() > 0)
        (added ? come : gone)[fmt::format("{} {}", its.dtype.name,
                                          fmt::join(its.shape, ","))]
            .push_back(i);
    }
    std::vector<std::size_t> candidates_gone;
    std::vector<std::size_t> candidates_come;
    for (const auto& [kind, changes] : gone)
      if (const auto other = come.find(kind); other != come.end()) {
        candidates_gone.insert(candidates_gone.end(), changes.begin(),
                               changes.end());
        candidates_come.insert(candidates_come.end(), other->second.begin(),
                               other->second.end());
      }
    if (candidates_gone.empty())
      return {};
    const auto from =
        TRY(digests(before_, candidates_gone, &TensorChange::before));
    const auto to = TRY(digests(after_, candidates_come, &TensorChange::after));
    std::vector<bool> drop(found_.tensors.size());
    for (const auto& [digest, i] : from)
      if (const auto same = to.find(digest); same != to.end()) {
        TensorChange& moved = found_.tensors[same->second];
        moved.kind = ChangeKind::kMoved;
        moved.before = found_.tensors[i].before;
        moved.moved_from = found_.tensors[i].key;
        drop[i] = true;
      }
    std::size_t i = 0;
    std::erase_if(found_.tensors,
                  [&](const TensorChange&) { return drop[i++]; });
    return {};
  }

  Result<> compare_common(const Keys& tensors_a, const Keys& tensors_b) {
    struct Common {
      const std::string* key;
      std::uint32_t before;
      std::uint32_t after;
    };
    std::vector<Common> common;
    for (const auto& [key, node] : tensors_a)
      if (const auto other = tensors_b.find(key); other != tensors_b.end())
        common.push_back({&key, node, other->second});
    found_.compared = common.size();
    const WorkerPool pool(before_.context().threads);
    return pool.map_ordered(
        common.size(),
        [&](std::size_t i) -> Result<ElementDifference> {
          const Tensor& a = tensor(before_, common[i].before);
          const Tensor& b = tensor(after_, common[i].after);
          if (!a.problem.empty() || !b.problem.empty())
            return fail(ErrorKind::kCorrupt, "{}",
                        a.problem.empty() ? b.problem : a.problem);
          if (!std::ranges::equal(a.shape, b.shape))
            return ElementDifference();
          // Most tensors are equal or differ early, and comparing bytes is
          // many times faster than measuring.
          CompareOptions quick = options_;
          quick.quick = true;
          ElementDifference found =
              TRY(compare_elements(before_, a, after_, b, quick));
          if (options_.quick || (found.changed == 0 && a.dtype == b.dtype))
            return found;
          return compare_elements(before_, a, after_, b, options_);
        },
        [&](std::size_t i, Result<ElementDifference> elements) -> Result<> {
          const Tensor& a = tensor(before_, common[i].before);
          const Tensor& b = tensor(after_, common[i].after);
          TensorChange change{.key = *common[i].key,
                              .before = common[i].before,
                              .after = common[i].after};
          if (!elements) {
            change.kind = ChangeKind::kUnknown;
            change.problem = elements.error().message();
          } else if (!std::ranges::equal(a.shape, b.shape)) {
            change.kind = ChangeKind::kReshaped;
          } else if (a.dtype == b.dtype && elements->changed == 0) {
            ++found_.equal;
            return {};
          } else if (a.dtype == b.dtype && !options_.quick &&
                     elements->beyond == 0 && has_tolerance()) {
            ++found_.close;
            return {};
          } else {
            change.elements = *elements;
          }
          found_.tensors.push_back(std::move(change));
          return {};
        });
  }

  bool has_tolerance() const {
    return options_.relative > 0 || options_.absolute > 0;
  }

  void compare_values(const Keys& values_a, const Keys& values_b) {
    const auto text = [](const Checkpoint& checkpoint, std::uint32_t node) {
      return value_repr(checkpoint.nodes()[node].value);
    };
    for (const auto& [key, node] : values_a) {
      const auto other = values_b.find(key);
      std::string before = text(before_, node);
      if (other == values_b.end()) {
        found_.values.push_back({key, std::move(before), {}});
        continue;
      }
      std::string after = text(after_, other->second);
      if (before != after)
        found_.values.push_back({key, std::move(before), std::move(after)});
    }
    for (const auto& [key, node] : values_b)
      if (!values_a.contains(key))
        found_.values.push_back({key, {}, text(after_, node)});
  }

  const Checkpoint& before_;
  const Checkpoint& after_;
  const KeyFilter& filter_;
  const CompareOptions& options_;
  CheckpointDifference found_;
};

}  // namespace

std::string_view change_name(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::kAdded:
      return "added";
    case ChangeKind::kRemoved:
      return "removed";
    case ChangeKind::kMoved:
      return "moved";
    case ChangeKind::kReshaped:
      return "reshaped";
    case ChangeKind::kChanged:
      return "changed";
    case ChangeKind::kUnknown:
      return "unreadable";
  }
  return "";
}

Result<CheckpointDifference> compare(const Checkpoint& before,
                                     const Checkpoint& after,
                                     const KeyFilter& filter,
                                     const CompareOptions& options) {
  return Comparison(before, after, filter, options).run();
}

}  // namespace postflight
