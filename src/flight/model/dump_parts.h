#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/limits.h"
#include "flight/model/dump.h"
#include "flight/model/job.h"

namespace postflight {

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
