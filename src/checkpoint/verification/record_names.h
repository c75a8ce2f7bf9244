#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace postflight {

// The C++ libraries that torch is built with: on Linux, macOS, Windows.
enum class CppLibrary : std::uint8_t { kLibstdcxx, kLibcxx, kMsvc };

// std::hash<std::string> of that library, on 64-bit platforms.
std::uint64_t string_hash(std::string_view text, CppLibrary library);

// The first half of the serialization id that torch gives to an archive whose
// records were written in this order: their names, hashed in the order in which
// a std::unordered_set of that library has them.
std::uint64_t hash_of_names(std::span<const std::string> names,
                            CppLibrary library);

// How torch joins hashes.
constexpr std::uint64_t hash_joined(std::uint64_t hash, std::uint64_t other) {
  return hash ^ (other + 0x9e3779b9 + (hash << 6) + (hash >> 2));
}

}  // namespace postflight
