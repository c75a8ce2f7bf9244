#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/key_filter.h"
#include "checkpoint/model/checkpoint.h"

namespace postflight {

// How the elements of two tensors of one shape differ. NaN equals NaN here: the
// question is what changed.
struct ElementDifference {
  bool measured = true;  // if not, only whether any changed is known
  std::uint64_t elements = 0;
  std::uint64_t changed = 0;  // other bits, or another number
  std::uint64_t beyond = 0;   // by more than the tolerance
  std::uint64_t first = 0;    // flat index of the first changed one
  double max_absolute = 0;    // of finite elements
  double max_relative = 0;
  std::optional<double> cosine = {};  // if there are finite elements
  // Of floats of one dtype, how many are 1, 2-3, 4-15, 16-255, more units in
  // the last place apart.
  static constexpr std::size_t kUlpClasses = 5;
  std::array<std::uint64_t, kUlpClasses> ulps{};
};

enum class ChangeKind : std::uint8_t {
  kAdded,
  kRemoved,
  kMoved,     // the same bytes under another key
  kReshaped,  // another shape
  kChanged,   // other elements, or another dtype
  kUnknown,   // could not be read
};

std::string_view change_name(ChangeKind kind);

struct TensorChange {
  ChangeKind kind = ChangeKind::kChanged;
  std::string key;  // in the second; if removed, the first
  std::optional<std::string> moved_from = {};
  std::uint32_t before = kNoIndex;  // nodes
  std::uint32_t after = kNoIndex;
  std::optional<ElementDifference> elements = {};
  std::string problem = {};
};

struct ValueChange {
  std::string key;
  std::optional<std::string> before = {};
  std::optional<std::string> after = {};
};

struct CheckpointDifference {
  std::uint64_t compared = 0;  // tensors that both have
  std::uint64_t equal = 0;
  std::uint64_t close = 0;            // not equal, but within the tolerance
  std::vector<TensorChange> tensors;  // largest change first
  std::vector<ValueChange> values;

  bool any() const { return !tensors.empty() || !values.empty(); }
};

struct CompareOptions {
  double relative = 0;
  double absolute = 0;
  // Only whether tensors are equal, not how they differ.
  bool quick = false;
  bool values = true;
  std::function<void(std::uint64_t bytes)> progress = {};
};

// Compares two checkpoints of any formats by their keys without quotes.
Result<CheckpointDifference> compare(const Checkpoint& before,
                                     const Checkpoint& after,
                                     const KeyFilter& filter = {},
                                     const CompareOptions& options = {});

}  // namespace postflight
