#pragma once

#include "base/error.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace postflight {

// How a checkpoint names a transform: name[@domain][/version], such as
// "stream.zstd/1" or "stream.lz4@postflight/1". Names without a domain are
// torch's own.
struct ExtensionDescriptor {
  std::string registry_name;  // with its domain: "stream.lz4@postflight"
  std::string version;        // "1", "1.2"; empty if there is none

  bool operator==(const ExtensionDescriptor&) const = default;
};

// Letters, digits and "._-" make names, domains and versions.
Result<ExtensionDescriptor> parse_descriptor(std::string_view text);

// The number before the first dot of a version, such as "1" or "1.7".
Result<std::uint64_t> major_version(const ExtensionDescriptor& descriptor);

}  // namespace postflight
