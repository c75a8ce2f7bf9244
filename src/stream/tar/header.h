#pragma once

#include "base/bytes.h"
#include "base/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace postflight {

constexpr std::size_t kTarBlock = 512;

// One header block of a tar archive.
struct TarHeader {
  std::string path;
  char type = '0';
  std::uint64_t size = 0;
  std::string link = {};  // where a link leads

  bool operator==(const TarHeader&) const = default;
};

// Reads a header from one block that is not all zeros.
Result<TarHeader> read_tar_header(Bytes block);

// Whether a file begins with a valid tar header, given its first 512 bytes.
bool looks_like_tar(Bytes front);

// The pax records that matter to a reader.
struct PaxRecords {
  std::optional<std::string> path = {};
  std::optional<std::string> link = {};
  std::optional<std::uint64_t> size = {};
  bool sparse = false;

  bool operator==(const PaxRecords&) const = default;
};

// Reads "<length> <key>=<value>\n" records, which replace earlier ones.
Result<> read_pax_records(std::string_view text, PaxRecords& records);

}  // namespace postflight
