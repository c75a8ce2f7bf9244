#pragma once

#include "stream/extension/registry.h"

namespace postflight {

// A registry of the extensions that are part of the program. The table to add
// a new one to is in built_in.cc.
ExtensionRegistry built_in_registry();

// Each is defined in the file of its filters.
ExtensionType zstd_extension();      // torch's stream.zstd
ExtensionType rot13_extension();     // the example of torch's documentation
ExtensionType lz4_extension();       // stream.lz4@postflight
ExtensionType checksum_extension();  // stream.checksum@postflight
ExtensionType aead_extension();      // stream.aead@postflight

}  // namespace postflight
