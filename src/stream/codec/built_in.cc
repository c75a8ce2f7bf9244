#include "stream/codec/built_in.h"

namespace postflight {

ExtensionRegistry built_in_registry() {
  return ExtensionRegistry({zstd_extension(), rot13_extension(),
                            lz4_extension(), checksum_extension(),
                            aead_extension()});
}

}  // namespace postflight
