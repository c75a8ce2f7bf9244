#pragma once

#include "base/bytes.h"
#include "base/limits.h"
#include "stream/source.h"
#include "stream/tar/header.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace postflight {

enum class TarKind {
  kFile,
  kFolder,
  kLink,   // hard or symbolic
  kOther,  // a device, a pipe
};

struct TarMember {
  std::string path;  // as written: may be absolute, have "..", or any bytes
  TarKind kind = TarKind::kFile;
  std::uint64_t offset = 0;  // of its contents, in the archive
  std::uint64_t size = 0;    // of its contents
  std::string link = {};     // where a link leads, as written

  bool operator==(const TarMember&) const = default;
};

// Reads a tar archive (ustar, GNU with its long names, pax) from front to back,
// member by member. Sparse files are refused. `source`, which outlives it,
// begins with the archive.
class TarReader {
 public:
  explicit TarReader(Source& source, const Limits& limits = {});

  // Advances to the next member, skipping the rest of this one; empty at the
  // end of the archive. After an error there is no next member.
  Result<std::optional<TarMember>> next();

  // Continues to read the contents of the current member.
  Result<Taken> read(std::span<std::byte> to);

 private:
  Result<std::optional<TarMember>> read_member();
  Result<std::optional<TarHeader>> read_header();
  Result<std::string> read_extension(const TarHeader& header);
  Result<> skip_rest();

  Source& source_;
  Limits limits_;
  std::uint64_t start_;
  std::uint64_t size_ = 0;     // of the member's contents
  std::uint64_t left_ = 0;     // bytes of them not yet read
  std::uint64_t padding_ = 0;  // after them
  std::uint64_t members_ = 0;
  std::string path_;    // of the member, for messages
  PaxRecords for_all_;  // of a global header
  bool done_ = false;
};

// All members of an archive in memory. Contents are
// archive.subspan(member.offset, member.size), and all listed are whole. If the
// archive is damaged or truncated, `members` are those before the damage, and
// `cut` is the one that is truncated, with the size that is left of it.
struct TarListing {
  std::vector<TarMember> members;
  std::optional<TarMember> cut;
  std::optional<Error> damage;
};
TarListing list_tar(Bytes archive, const Limits& limits = {});

}  // namespace postflight
