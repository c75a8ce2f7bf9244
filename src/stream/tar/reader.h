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
  std::string
      path;  // as written: it may be absolute or hold "..", or any bytes
  TarKind kind = TarKind::kFile;
  std::uint64_t offset = 0;  // of its contents, in the archive
  std::uint64_t size = 0;    // of its contents

  bool operator==(const TarMember&) const = default;
};

// Walks a tar archive (ustar, GNU with its long names, pax) front to back and
// keeps nothing but the name of the member it is at. Sparse files are refused.
// `source` has to outlive it and to begin with the archive.
class TarReader {
 public:
  explicit TarReader(Source& source, const Limits& limits = {});

  // Goes to the next member, past what was not read of this one; nothing at the
  // end of the archive. After an error there is no next member.
  Result<std::optional<TarMember>> next();

  // Reads on in the contents of the member that next() went to.
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
  std::uint64_t left_ = 0;     // of them, to be read
  std::uint64_t padding_ = 0;  // behind them
  std::uint64_t members_ = 0;
  std::string path_;    // of the member, for messages
  PaxRecords for_all_;  // what a global header says
  bool done_ = false;
};

// All members of an archive in memory. Contents are
// archive.subspan(member.offset, member.size), and all listed are whole. Where
// the archive is damaged or cut, `members` are those before that place, and
// `cut` is the one whose contents end early, with the size that is there.
struct TarListing {
  std::vector<TarMember> members;
  std::optional<TarMember> cut;
  std::optional<Error> damage;
};
TarListing list_tar(Bytes archive, const Limits& limits = {});

}  // namespace postflight
