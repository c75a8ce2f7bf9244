#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/finding.h"
#include "base/limits.h"
#include "checkpoint/zip/directory.h"

namespace postflight {

// Bytes that hold one or more pickles, back to back.
struct PickleStream {
  // What they are in: "archive/data.pkl", "item 2: archive/data.pkl"; empty for
  // the file itself.
  std::string where;
  // Where in the file they begin; empty if they were inflated.
  std::optional<std::uint64_t> offset;
  Contents contents;
  // They reach to the end of the file, as their size is unknown.
  bool salvaged = false;
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
};

// Finds every pickle inside a file by content: the file itself, the records of
// a zip archive (stored or deflated), of several archives back to back as
// distributed checkpoints have, of archives inside archives. A truncated zip
// still gives its first record. The streams keep views into `file`.
//
// Fails if there is no pickle, and says what the file seems to be.
Result<PickleStreams> find_pickle_streams(Bytes file, const Limits& limits,
                                          Allowance& allowance);

// Where pickles end and raw data begins in torch's format from before zip: its
// first pickle is this number, four more follow, then the storages.
bool is_legacy_magic(std::string_view twos_complement);
constexpr int kLegacyPickles = 5;

}  // namespace postflight
