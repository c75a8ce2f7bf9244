#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace postflight {

// Zip archives for tests, right unless told otherwise: each optional field
// replaces what the archive would truthfully say.
struct MadeZipEntry {
  std::string name = {};
  std::string contents = {};
  bool deflated = false;
  bool zip64 = false;  // sizes and offset in a 64-bit block of the directory
  std::uint16_t flags = 0;
  std::string local_extra = {};
  std::string after = {};  // bytes put behind the payload
  std::optional<std::string> local_name = {};
  std::optional<std::string> extra = {};
  std::optional<std::uint16_t> method = {};
  std::optional<std::uint32_t> crc = {};
  std::optional<std::uint64_t> compressed_size = {};
  std::optional<std::uint64_t> size = {};
  std::optional<std::uint64_t> header_offset = {};
};

struct MadeEnd {
  bool zip64 = false;
  std::uint16_t disk = 0;
  std::string comment = {};
  std::optional<std::uint16_t> comment_size = {};
  std::optional<std::uint64_t> entries = {};
  std::optional<std::uint64_t> directory_size = {};
  std::optional<std::uint64_t> directory_offset = {};
  std::optional<std::uint64_t> zip64_offset = {};
  std::optional<std::uint16_t> narrow_entries = {};  // in the 32-bit end record
};

std::string make_zip(const std::vector<MadeZipEntry>& entries,
                     const MadeEnd& end = {});

}  // namespace postflight
