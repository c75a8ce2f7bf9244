#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "flight/classic/analysis.h"

namespace postflight {

// What of a call must be equal on all ranks of a collective.
struct ClassicCallKey {
  std::uint32_t type = 0;  // of the operation's name
  SizesId inputs = {};     // 0 where they may differ
  SizesId outputs = {};
  std::uint32_t input_dtypes = 0;  // of the set of them; 0 likewise
  std::uint32_t output_dtypes = 0;

  bool operator==(const ClassicCallKey&) const = default;
};

struct ClassicCallFacts {
  ClassicCallKey key;
  OperationKind kind = OperationKind::kOther;
  // Whether a rank may be done before all others have joined.
  bool rooted = false;
  bool gloo = false;
  bool point_to_point = false;
  std::int32_t source = -1;  // of send and recv, in the group
  std::int32_t destination = -1;
};

struct ClassicCallDifference {
  ClassicMismatch mismatch = ClassicMismatch::kType;
  std::string text;
};

// The calls of a job, each looked at once.
class ClassicCalls {
 public:
  explicit ClassicCalls(const Job& job);

  const ClassicCallFacts& facts(CallId id) const { return facts_[id.value]; }

  // For two calls whose keys differ: in what, in torchfrtrace's words.
  ClassicCallDifference difference(CallId expected, CallId found) const;
  // Whether the sizes of the call itself can't be right on `members` ranks.
  std::optional<ClassicCallDifference> contradiction(CallId id,
                                                     std::size_t members) const;
  // Whether what one sends is as large as what the other receives.
  bool same_message(CallId send, CallId receive) const;

  // Elements of all inputs; the largest number if there are more.
  std::int64_t input_numel(CallId id) const;
  std::int64_t output_numel(CallId id) const;

 private:
  const Job& job_;
  std::vector<ClassicCallFacts> facts_;
};

}  // namespace postflight
