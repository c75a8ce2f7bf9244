#pragma once

#include <cstdint>
#include <string_view>

namespace postflight {

// The numbers and marks of zip files, as APPNOTE.TXT has them.

constexpr std::string_view kLocalSignature = "PK\3\4";
constexpr std::string_view kEntrySignature = "PK\1\2";
constexpr std::string_view kDescriptorSignature = "PK\7\10";
constexpr std::string_view kEndSignature = "PK\5\6";
constexpr std::string_view kZip64EndSignature = "PK\6\6";
constexpr std::string_view kLocatorSignature = "PK\6\7";

// Without the names and what follows them.
constexpr std::uint64_t kLocalHeaderSize = 30;
constexpr std::uint64_t kEntrySize = 46;

constexpr std::uint16_t kStored = 0;  // methods
constexpr std::uint16_t kDeflated = 8;

constexpr std::uint16_t kZip64Extra = 1;

// A 32-bit field whose value is in a 64-bit one elsewhere.
constexpr std::uint32_t kSaturated = 0xffffffff;

}  // namespace postflight
