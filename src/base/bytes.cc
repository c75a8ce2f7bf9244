#include "base/bytes.h"

namespace postflight {

Result<Bytes> slice(Bytes bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset)
    return fail(ErrorKind::kCorrupt,
                "{} bytes at offset {} are outside the {} available", size,
                offset, bytes.size());
  return bytes.subspan(offset, size);
}

tl::unexpected<Error> Cursor::out_of_bytes(std::uint64_t wanted) const {
  return fail(ErrorKind::kCorrupt, "offset {}: need {} bytes, {} left",
              offset(), wanted, rest_.size());
}

}  // namespace postflight
