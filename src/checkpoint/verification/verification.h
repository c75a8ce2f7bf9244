#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/finding.h"
#include "checkpoint/model/checkpoint.h"
#include "pickle/audit/safety.h"

namespace postflight {

struct VerifyOptions {
  // Called with the number of bytes read, from any thread.
  std::function<void(std::uint64_t bytes)> progress = {};
};

// What was checked and found. Findings of opening the checkpoint come first.
struct Verification {
  std::uint64_t tensors = 0;
  std::uint64_t unreadable = 0;
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;  // checked by CRC
  std::uint64_t crc_good = 0;
  std::uint64_t crc_absent = 0;
  std::uint64_t crc_bad = 0;
  std::vector<Finding> findings;
  SafetyVerdict safety;  // as postflight pickle says it
  // Tensors with an unreadable item, which has a finding.
  std::set<const Assembly*> broken;

  // Adds a finding, up to 10,000.
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
// What each byte of an archive belongs to, and whether duplicate statements
// agree.
// `torchs`: whether torch should have written it.
void verify_layout(const DataFile& file, bool torchs, Verification& result);
void verify_ranks(const Checkpoint& checkpoint, Verification& result);

}  // namespace postflight
