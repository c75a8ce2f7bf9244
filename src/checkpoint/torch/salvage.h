#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/limits.h"
#include "checkpoint/zip/directory.h"
#include "checkpoint/zip/extent.h"

namespace postflight {

// What is left of a truncated archive of torch, which lacks the directory at
// its end. torch writes no sizes into the headers of its records, but data.pkl
// comes first, marks its own end, and has the size of every storage after it.
struct Salvage {
  std::vector<ZipEntry> entries;  // whole ones, in file order
  std::vector<Extent> extents;    // of their bytes, in the same order
  std::string summary;            // how much is lost, in words
};

// Views point into `file`. There are no entries if nothing was found.
Salvage salvage_zip(Bytes file, const Limits& limits);

}  // namespace postflight
