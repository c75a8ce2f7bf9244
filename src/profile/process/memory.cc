#include "profile/process/memory.h"

#include <algorithm>
#include <array>

#include <sys/uio.h>

namespace postflight {
namespace {

// What the kernel takes in one call (UIO_MAXIOV).
constexpr std::size_t kMostPieces = 1024;

}  // namespace

std::size_t ProcessMemory::read(std::span<const MemoryPiece> pieces) const {
  std::array<iovec, kMostPieces> here;
  std::array<iovec, kMostPieces> there;
  std::size_t done = 0;
  while (done < pieces.size()) {
    const std::size_t count = std::min(pieces.size() - done, kMostPieces);
    std::size_t wanted = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const MemoryPiece& piece = pieces[done + i];
      here[i] = {piece.to.data(), piece.to.size()};
      there[i] = {reinterpret_cast<void*>(piece.address), piece.to.size()};
      wanted += piece.to.size();
    }
    const ssize_t got =
        process_vm_readv(pid_, here.data(), count, there.data(), count, 0);
    if (got == static_cast<ssize_t>(wanted)) {
      done += count;
      continue;
    }
    auto rest = got < 0 ? 0 : static_cast<std::size_t>(got);
    while (rest >= pieces[done].to.size()) {
      rest -= pieces[done].to.size();
      ++done;
    }
    return done;
  }
  return done;
}

}  // namespace postflight
