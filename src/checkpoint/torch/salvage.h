#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/limits.h"
#include "checkpoint/zip/directory.h"
#include "checkpoint/zip/extent.h"

namespace postflight {

// What is left of one of torch's archives that lost its end, and with it the
// directory. torch writes no sizes into the headers of its records, but
// data.pkl comes first, says itself where it ends, and names the size of every
// storage after it.
struct Salvage {
  std::vector<ZipEntry> entries;  // whole ones, in file order
  std::vector<Extent> extents;    // of their bytes, beside them
  std::string summary;            // how much is lost, in words
};

// Views point into `file`. Without entries nothing could be found.
Salvage salvage_zip(Bytes file, const Limits& limits);

}  // namespace postflight
