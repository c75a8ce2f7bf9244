#include "stream/codec/built_in.h"

namespace postflight {

std::vector<ExtensionType> built_in_extensions() {
  return {zstd_extension(), rot13_extension(), lz4_extension(),
          checksum_extension(), aead_extension()};
}

}  // namespace postflight
