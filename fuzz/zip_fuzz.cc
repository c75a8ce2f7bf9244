#include "checkpoint/torch/archives.h"
#include "checkpoint/zip/directory.h"

#include <cstddef>
#include <cstdint>

using namespace postflight;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const Bytes file = std::as_bytes(std::span(data, size));
  const Limits limits{.max_inflated_bytes = 1 << 20};
  for (const Extent& extent : find_archives(file, limits).extents) {
    const Bytes archive = file.subspan(extent.offset, extent.size);
    const Result<ZipDirectory> directory = ZipDirectory::read(archive, limits);
    if (!directory)
      continue;
    for (const ZipEntry& entry : directory->entries()) {
      if (directory->find_ignoring_case(entry.name) == nullptr)
        __builtin_trap();
      if (const Result<Contents> contents = directory->contents(entry))
        (void)check_crc(entry, contents->bytes());
    }
  }
  return 0;
}
