#pragma once

#include "base/bytes.h"
#include "base/finding.h"
#include "checkpoint/zip/extent.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace postflight {

// What the records at the end of a zip archive state: where the archive and its
// directory are. Offsets count from the front of the searched range, not of the
// archive.
struct ZipEnd {
  Extent archive;  // first byte to the end of the comment
  Extent directory;
  std::uint64_t entries = 0;  // at most directory.size / 46
  std::vector<Finding> findings;
};

// Finds the last archive in `file`. Up to 64 KiB may follow its end record,
// and anything may come before the archive. Looks at the records at the end
// and the first bytes of the directory only.
Result<ZipEnd> find_zip_end(Bytes file);

// An end record before that one, whose comment it lies in: readers that check
// the length of the comment take it.
std::optional<std::uint64_t> other_zip_end(Bytes file);

}  // namespace postflight
