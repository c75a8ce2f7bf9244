#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace postflight {

// The known keys of an entry, of all versions of the recorder.
enum class EntryField : std::uint8_t {
  kFrames,
  kRecordId,
  kLocalGroup,
  kProcessGroup,
  kThreadName,
  kThreadId,
  kSequence,
  kOldSequence,  // before 2.0
  kP2pSequence,
  kOperationId,
  kName,
  kCreated,
  kDuration,
  kInputSizes,
  kInputDtypes,
  kOutputSizes,
  kOutputDtypes,
  kState,
  kStarted,
  kCompleted,
  kRetired,
  kTimeout,
  kPointToPoint,
  kUnknown,
};

EntryField entry_field(std::string_view key);

// More than any recorder writes; the rest is ignored.
constexpr std::size_t kMostFields = 256;
constexpr std::size_t kMostFrames = 4096;
constexpr std::size_t kMostDimensions = 64;  // torch's own limit

}  // namespace postflight
