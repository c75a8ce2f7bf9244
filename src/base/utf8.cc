#include "base/utf8.h"

#include <cassert>
#include <cstring>

namespace postflight {

namespace {

// The length of a sequence by its first byte, and the valid range of its second
// byte: narrower after E0 and F0 (overlong forms) and F4 (past U+10FFFF).
struct Lead {
  std::uint8_t size;
  std::uint8_t payload;
  std::uint8_t second_low = 0x80;
  std::uint8_t second_high = 0xBF;
};

Lead lead_of(std::uint8_t byte) {
  const auto payload = [byte](int mask) {
    return static_cast<std::uint8_t>(byte & mask);
  };
  if (byte >= 0xC2 && byte <= 0xDF)
    return {2, payload(0x1F)};
  if (byte == 0xE0)
    return {3, payload(0x0F), 0xA0, 0xBF};
  if (byte > 0xE0 && byte <= 0xEF)
    return {3, payload(0x0F)};
  if (byte == 0xF0)
    return {4, payload(0x07), 0x90, 0xBF};
  if (byte > 0xF0 && byte <= 0xF3)
    return {4, payload(0x07)};
  if (byte == 0xF4)
    return {4, payload(0x07), 0x80, 0x8F};
  return {0, 0};
}

bool starts_with_eight_ascii(std::string_view text) {
  if (text.size() < sizeof(std::uint64_t))
    return false;
  std::uint64_t word;
  std::memcpy(&word, text.data(), sizeof(word));
  return (word & 0x8080808080808080) == 0;
}

}  // namespace

Utf8Character decode_utf8(std::string_view text) {
  assert(!text.empty());
  const auto byte_at = [text](std::size_t index) {
    return static_cast<std::uint8_t>(text[index]);
  };
  const std::uint8_t first = byte_at(0);
  if (first < 0x80)
    return {first, 1, Utf8Kind::kCharacter};
  const Utf8Character invalid{first, 1, Utf8Kind::kInvalid};
  const Lead lead = lead_of(first);
  if (lead.size == 0 || text.size() < lead.size ||
      byte_at(1) < lead.second_low || byte_at(1) > lead.second_high)
    return invalid;
  char32_t code_point = lead.payload;
  for (std::size_t index = 1; index < lead.size; ++index) {
    if ((byte_at(index) & 0xC0) != 0x80)
      return invalid;
    code_point = code_point << 6 | (byte_at(index) & 0x3F);
  }
  const bool is_surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
  return {code_point, lead.size,
          is_surrogate ? Utf8Kind::kSurrogate : Utf8Kind::kCharacter};
}

void append_utf8(char32_t code_point, std::string& out) {
  const auto append = [&out](char32_t byte) {
    out.push_back(static_cast<char>(byte));
  };
  const auto continuation = [code_point](int shift) {
    return 0x80 | (code_point >> shift & 0x3F);
  };
  if (code_point < 0x80) {
    append(code_point);
  } else if (code_point < 0x800) {
    append(0xC0 | code_point >> 6);
    append(continuation(0));
  } else if (code_point < 0x10000) {
    append(0xE0 | code_point >> 12);
    append(continuation(6));
    append(continuation(0));
  } else {
    append(0xF0 | code_point >> 18);
    append(continuation(12));
    append(continuation(6));
    append(continuation(0));
  }
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    if (starts_with_eight_ascii(text)) {
      text.remove_prefix(sizeof(std::uint64_t));
      continue;
    }
    const Utf8Character character = decode_utf8(text);
    if (character.kind != Utf8Kind::kCharacter)
      return false;
    text.remove_prefix(character.size);
  }
  return true;
}

std::size_t write_latin1(std::string_view& text, char* room) {
  std::size_t size = 0;
  while (!text.empty()) {
    const Utf8Character character = decode_utf8(text);
    if (character.kind != Utf8Kind::kCharacter || character.code_point > 0xff)
      break;
    room[size++] = static_cast<char>(character.code_point);
    text.remove_prefix(character.size);
  }
  return size;
}

}  // namespace postflight
