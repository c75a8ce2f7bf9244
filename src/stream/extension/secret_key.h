#pragma once

#include "base/bytes.h"
#include "base/error.h"

#include <array>
#include <cstddef>
#include <filesystem>
#include <string_view>

namespace postflight {

// A 256-bit encryption key. The destructor wipes it from memory, and it appears
// in no message.
class SecretKey {
 public:
  static constexpr std::size_t kSize = 32;

  // 64 hexadecimal digits.
  static Result<SecretKey> from_hex(std::string_view text);
  // A file of 32 bytes, or of 64 hexadecimal digits and an optional newline.
  static Result<SecretKey> read(const std::filesystem::path& path);

  SecretKey(SecretKey&& other) noexcept;
  SecretKey& operator=(SecretKey&&) = delete;
  ~SecretKey();

  Bytes bytes() const { return bytes_; }

 private:
  SecretKey() = default;

  std::array<std::byte, kSize> bytes_{};
};

}  // namespace postflight
