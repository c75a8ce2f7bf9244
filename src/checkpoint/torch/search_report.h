#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/finding.h"
#include "checkpoint/torch/pickle_streams.h"
#include "checkpoint/zip/directory.h"

namespace postflight {

// What a search has found and what it may still cost. `where` may end with the
// colon that other places follow.
struct SearchReport {
  Allowance& allowance;
  PickleStreams result;

  void add(Finding finding, const std::string& where);
  // Of what was not looked into, or what readers would take differently.
  void doubt(std::string kind, std::string message, const std::string& where);
  // Subtracts a size from the allowance; false, with a finding, if that is
  // exceeded.
  bool spend(std::uint64_t size, bool stored, const std::string& where);
  void check(const ZipEntry& entry, Bytes contents, const std::string& where);
};

}  // namespace postflight
