#include "stream/memory_stream.h"
#include "stream/tar/reader.h"

#include <cstddef>
#include <cstdint>

using namespace postflight;

// Listing an archive and reading it as a stream must agree.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const Bytes archive = std::as_bytes(std::span(data, size));
  const TarListing listing = list_tar(archive);
  MemorySource source(archive);
  TarReader reader(source);
  for (const TarMember& member : listing.members) {
    const Result<std::optional<TarMember>> next = reader.next();
    if (!next || *next != member || !slice(archive, member.offset, member.size))
      __builtin_trap();
    std::byte room[64];
    for (std::uint64_t read = 0; read < member.size;) {
      const Result<Taken> taken = reader.read(room);
      if (!taken || taken->count == 0)
        __builtin_trap();
      read += taken->count;
    }
  }
  return 0;
}
