#pragma once

#include "stream/extension/registry.h"

#include <vector>

namespace postflight {

// The extensions that are part of the program: the one table to add a new one
// to. Each is defined beside its filters.
std::vector<ExtensionType> built_in_extensions();

ExtensionType zstd_extension();      // torch's stream.zstd
ExtensionType rot13_extension();     // the example of torch's documentation
ExtensionType lz4_extension();       // stream.lz4@postflight
ExtensionType checksum_extension();  // stream.checksum@postflight
ExtensionType aead_extension();      // stream.aead@postflight

}  // namespace postflight
