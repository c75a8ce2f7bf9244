#pragma once

#include <string>
#include <string_view>

namespace postflight {

// Compressed by the libraries themselves, in one call.
std::string gzipped(std::string_view text);
std::string zlib_compressed(std::string_view text);
// One frame, which states its size where `size_known`.
std::string zstd_compressed(std::string_view text, bool size_known = true);
// A frame that decoders pass over.
std::string zstd_skippable(std::string_view text);

// The whole of a file under tests/data.
std::string test_data(std::string_view name);

}  // namespace postflight
