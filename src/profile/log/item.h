#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace postflight {

// What writer and reader of a profile's log agree on.
constexpr std::string_view kProfileLogMagic = "PFPROF\x01\n";

// In ns: sums over as many samples as Limits allows stay below 2^64.
constexpr std::uint64_t kMostSampleWeight = 100'000'000'000;

enum class LogItem : std::uint8_t {
  kText = 1,
  kFrame = 2,
  kStack = 3,
  kPhase = 4,
  kThread = 5,
  kSample = 6,
  kNote = 7,
  kCounter = 8,
};

// Bits of a sample's flags.
constexpr unsigned kWaitingFlag = 1;
constexpr unsigned kTornFlag = 2;
constexpr unsigned kCutFlag = 4;
constexpr unsigned kUnreadableFlag = 8;

constexpr std::uint32_t log_checksum(Bytes bytes) {
  std::uint32_t hash = 2166136261U;
  for (const std::byte byte : bytes)
    hash = (hash ^ std::to_integer<std::uint32_t>(byte)) * 16777619U;
  return hash;
}

}  // namespace postflight
