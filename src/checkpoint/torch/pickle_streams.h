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

// A stretch of bytes in which one or more pickles lie back to back.
struct PickleStream {
  // Inside what: "archive/data.pkl", "item 2: archive/data.pkl"; empty for the
  // file itself.
  std::string where;
  // Where in the file it begins; nothing if it was inflated.
  std::optional<std::uint64_t> offset;
  Contents contents;
  // It runs on to the end of the file, for nobody knows where it ends.
  bool salvaged = false;
};

// What a file may still cost. Entries of an archive can overlap and inflate to
// a thousand times their size, so that a small file can hold a lot.
struct Allowance {
  explicit Allowance(std::uint64_t file_size, const Limits& limits);

  std::uint64_t inflated;   // bytes that may come out of deflated entries
  std::uint64_t looked_at;  // bytes of entries that may be looked into
};

struct PickleStreams {
  std::vector<PickleStream> streams;
  std::vector<Finding> findings;
  std::vector<Contents> owned;  // inflated archives that streams point into
};

// Finds every pickle inside a file by content: the file itself, the records of
// a zip archive (stored or deflated), of several archives back to back as
// distributed checkpoints have, of archives inside archives. A zip that lost
// its directory still gives its first record. The streams keep views into
// `file`.
//
// Fails if the file can't hold a pickle, and says what it seems to be.
Result<PickleStreams> find_pickle_streams(Bytes file, const Limits& limits,
                                          Allowance& allowance);

// Where pickles end and raw data begins in torch's format from before zip: its
// first pickle is this number, four more follow, then the storages.
bool is_legacy_magic(std::string_view twos_complement);
constexpr int kLegacyPickles = 5;

}  // namespace postflight
