#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/finding.h"
#include "checkpoint/model/checkpoint.h"

namespace postflight {

struct VerifyOptions {
  // Told of bytes that were read; may be called from any thread.
  std::function<void(std::uint64_t bytes)> progress = {};
};

// What was looked at, and what was found. Findings of opening it come first.
struct Verification {
  std::uint64_t tensors = 0;
  std::uint64_t unreadable = 0;
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;  // that went through a CRC
  std::uint64_t crc_good = 0;
  std::uint64_t crc_absent = 0;
  std::uint64_t crc_bad = 0;
  std::vector<Finding> findings;
  // Tensors with an item that cannot be read, which a finding says.
  std::set<const Assembly*> broken;

  // Up to as many as anybody would read.
  void report(std::string kind, Severity severity, std::string message,
              std::string where);
};

// Checks everything about a checkpoint that can be checked without running it:
// the layout of its archives byte by byte, the CRC of every record, torch's
// serialization id, each tensor against its record or its items, ranks against
// each other.
Verification verify(const Checkpoint& checkpoint,
                    const VerifyOptions& options = {});

// Its parts.
void verify_archive(const Checkpoint& checkpoint, const DataFile& file,
                    const VerifyOptions& options, Verification& result);
// Where each byte of an archive belongs, and whether what it says twice agrees.
void verify_layout(const DataFile& file, Verification& result);
void verify_ranks(const Checkpoint& checkpoint, Verification& result);

}  // namespace postflight
