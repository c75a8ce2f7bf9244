#pragma once

#include "base/bytes.h"
#include "base/finding.h"
#include "base/limits.h"
#include "checkpoint/zip/extent.h"

#include <optional>
#include <vector>

namespace postflight {

// The zip archives of a file, in file order, and findings about the bytes
// around them.
struct Archives {
  std::vector<Extent> extents;
  std::vector<Finding> findings;
};

// Finds all archives of a file: one in a file of torch.save, several back to
// back in a data file of a distributed checkpoint. Each archive's end says
// where it begins, so the walk goes backwards from end record to end record;
// what it does not recognise becomes a finding.
Archives find_archives(Bytes file, const Limits& limits);

// The archive whose end record is in the last 64 KiB, as Python's zipfile looks
// for it, if it has entries.
std::optional<Extent> archive_at_end(Bytes file);

}  // namespace postflight
