#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/limits.h"
#include "flight/model/dump.h"
#include "flight/model/job.h"

namespace postflight {

class Machine;

// Reads one dump, pickle or JSON, and keeps no views into `bytes`. Of a damaged
// dump, returns the readable part with its `damage` set; fails only if there is
// none. `machine` is passed in so that its memory is reused, and
// `lists` as all dumps of a job have the same.
Result<Dump> read_dump(Bytes bytes, Machine& machine, const Limits& limits,
                       MemberLists& lists);

// A dump in a file, or why it was skipped.
struct DumpPart {
  std::string file;  // for a member of an archive: "job.tar/rank_0"
  std::optional<Dump> dump;
  std::optional<SkippedFile> skipped;
};

struct DumpParts {
  std::uint64_t bytes = 0;  // the size of the file
  std::vector<DumpPart> parts;
};

// Reads the dumps in one file: plain, compressed with gzip or zstd, or a tar
// archive, whose members may be compressed as well.
DumpParts read_dump_parts(const std::string& file, Machine& machine,
                          const Limits& limits, MemberLists& lists);

}  // namespace postflight
