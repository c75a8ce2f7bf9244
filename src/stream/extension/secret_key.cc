#include "stream/extension/secret_key.h"

#include "stream/file_stream.h"

#include <algorithm>
#include <optional>
#include <span>

#include <cstring>

namespace postflight {
namespace {

std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9')
    return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f')
    return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F')
    return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

void wipe(std::span<std::byte> bytes) {
  ::explicit_bzero(bytes.data(), bytes.size());
}

}  // namespace

SecretKey::SecretKey(SecretKey&& other) noexcept : bytes_(other.bytes_) {
  wipe(other.bytes_);
}

SecretKey::~SecretKey() {
  wipe(bytes_);
}

Result<SecretKey> SecretKey::from_hex(std::string_view text) {
  SecretKey key;
  if (text.size() != 2 * kSize)
    return fail(ErrorKind::kUsage,
                "a key is 64 hexadecimal digits, not {} characters; make one "
                "with: openssl rand -hex 32",
                text.size());
  for (std::size_t i = 0; i < kSize; ++i) {
    const auto high = hex_digit(text[2 * i]);
    const auto low = hex_digit(text[2 * i + 1]);
    if (!high || !low)
      return fail(ErrorKind::kUsage,
                  "a key is 64 hexadecimal digits; character {} or {} is not "
                  "one",
                  2 * i + 1, 2 * i + 2);
    key.bytes_[i] = static_cast<std::byte>(*high << 4 | *low);
  }
  return key;
}

Result<SecretKey> SecretKey::read(const std::filesystem::path& path) {
  FileSource file = TRY(FileSource::open(path));
  // One byte more than the longest form, to detect a longer file.
  std::array<std::byte, 2 * kSize + 2> text;
  const std::size_t size = TRY(read_fully(file, text));
  if (size == kSize) {
    SecretKey key;
    std::ranges::copy(std::span(text).first(kSize), key.bytes_.begin());
    wipe(text);
    return key;
  }
  std::string_view digits = as_text(Bytes(text).first(size));
  if (digits.ends_with('\n'))
    digits.remove_suffix(1);
  Result<SecretKey> key = from_hex(digits);
  wipe(text);
  if (!key)
    return fail(ErrorKind::kUsage,
                "{} is not a key file: it must contain 32 bytes or 64 "
                "hexadecimal digits; make one with: openssl rand -hex 32",
                path.string());
  return key;
}

}  // namespace postflight
