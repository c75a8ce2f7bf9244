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

// Reads one dump, pickle or JSON, told by its first bytes. Nothing in `bytes`
// is needed afterwards. An error only where no part of a dump was there: what
// could be read of a damaged one is returned with its `damage`. `machine` is
// the caller's, so that its memory serves many dumps.
Result<Dump> read_dump(Bytes bytes, Machine& machine, const Limits& limits);

// A dump in a file, or why there is none.
struct DumpPart {
  std::string file;  // of a member of an archive: "job.tar/rank_0"
  std::optional<Dump> dump;
  std::optional<SkippedFile> skipped;
};

struct DumpParts {
  std::uint64_t bytes = 0;  // of the file
  std::vector<DumpPart> parts;
};

// Reads the dump or dumps in one file: plain, compressed with gzip or zstd, or
// members of a tar archive, each of which may be compressed again.
DumpParts read_dump_parts(const std::string& file, Machine& machine,
                          const Limits& limits);

}  // namespace postflight
