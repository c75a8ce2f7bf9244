#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/finding.h"
#include "base/limits.h"
#include "checkpoint/zip/directory.h"
#include "pickle/audit/safety.h"

namespace postflight {

// Bytes that hold one or more pickles, back to back.
struct PickleStream {
  // What they are in: "archive/data.pkl", "item 2: archive/data.pkl"; empty for
  // the file itself.
  std::string where;
  // Where in the file they begin; empty if they were inflated.
  std::optional<std::uint64_t> offset;
  Contents contents;
  // Only the first pickle counts: where it ends is known only from itself.
  bool salvaged = false;
  // The modules that its archive brings, by place in PickleStreams::modules.
  std::optional<std::uint32_t> modules = {};
};

// How much may still be read of a file. Entries of an archive can overlap and
// inflate to a thousand times their size, so a small file can have a lot.
struct Allowance {
  explicit Allowance(std::uint64_t file_size, const Limits& limits);

  std::uint64_t inflated;   // bytes that deflated entries may inflate to
  std::uint64_t looked_at;  // bytes of stored entries that may be examined
};

struct PickleStreams {
  std::vector<PickleStream> streams;
  std::vector<Finding> findings;
  std::vector<Contents> owned;  // inflated archives that streams point into
  // What was not looked into, and what readers would take differently.
  std::vector<Reason> doubts = {};
  // Names of Python modules with their packages: "a.b".
  std::vector<std::set<std::string, std::less<>>> modules = {};
  // What the file is, if it holds no pickles: "a NumPy file".
  std::string_view format = {};
};

// Where pickles end and raw data begins in torch's format from before zip: its
// first pickle is this number, four more follow, then the storages.
bool is_legacy_magic(std::string_view twos_complement);
constexpr int kLegacyPickles = 5;

}  // namespace postflight
