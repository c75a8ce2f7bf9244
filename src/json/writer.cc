#include "json/writer.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/escape.h"
#include "base/utf8.h"

namespace postflight {
namespace {

constexpr std::int64_t kExact = std::int64_t{1} << 53;  // a double's integers

// Printable ASCII that stands in a JSON string as it is.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain{};
  for (std::size_t c = 0x20; c < 0x7F; ++c)
    plain[c] = c != '"' && c != '\\';
  return plain;
}();

std::size_t plain_prefix(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size() && kPlain[static_cast<unsigned char>(text[size])])
    ++size;
  return size;
}

void write_unit(std::uint32_t unit, Output& out) {
  out += fmt::format("\\u{:04x}", unit);
}

void write_code_point(char32_t code_point, Output& out) {
  const auto value = static_cast<std::uint32_t>(code_point);
  if (value < 0x10000) {
    write_unit(value, out);
    return;
  }
  write_unit(0xD800 + ((value - 0x10000) >> 10), out);
  write_unit(0xDC00 + ((value - 0x10000) & 0x3FF), out);
}

// `exact` is false for text with invalid bytes in it.
void write_escaped(const Utf8Character& character, std::string_view bytes,
                   bool exact, Output& out) {
  if (character.kind == Utf8Kind::kInvalid) {
    out += fmt::format("\\\\x{:02x}",
                       static_cast<std::uint32_t>(character.code_point));
    return;
  }
  switch (character.code_point) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += exact ? "\\\\" : "\\\\\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  if (character.kind == Utf8Kind::kCharacter && is_plain(character.code_point))
    out += bytes;
  else
    write_code_point(character.code_point, out);
}

bool write_string(std::string_view text, Output& out) {
  bool exact = true;
  out += "\"";
  std::size_t plain = plain_prefix(text);
  if (plain < text.size()) {
    exact = JsonWriter::keeps(text);
    while (plain < text.size()) {
      out += text.substr(0, plain);
      text.remove_prefix(plain);
      const Utf8Character character = decode_utf8(text);
      write_escaped(character, text.substr(0, character.size), exact, out);
      text.remove_prefix(character.size);
      plain = plain_prefix(text);
    }
  }
  out += text;
  out += "\"";
  return exact;
}

// The digits of an integer, which live as long as this does.
struct Digits {
  explicit Digits(std::integral auto number) : buffer(number) {}
  std::string_view text() const { return {buffer.data(), buffer.size()}; }
  fmt::format_int buffer;
};

}  // namespace

void JsonWriter::begin(std::string_view schema) {
  assert(open_.empty());
  comma_ = false;
  object();
  field("schema", schema);
}

void JsonWriter::finish() {
  end();
  assert(open_.empty());
  out_ += "\n";
}

void JsonWriter::before_value() {
  assert((!open_.empty() && open_.back() == '}') == after_key_);
  assert(!(open_.empty() && comma_) && "a second value without a container");
  if (comma_)
    out_ += ",";
  comma_ = true;
  after_key_ = false;
}

void JsonWriter::open(char opening, char closing) {
  before_value();
  out_ += std::string_view(&opening, 1);
  open_ += closing;
  comma_ = false;
}

void JsonWriter::end() {
  assert(!open_.empty() && !after_key_);
  out_ += std::string_view(&open_.back(), 1);
  open_.pop_back();
  comma_ = true;
}

void JsonWriter::key(std::string_view name) {
  assert(!open_.empty() && open_.back() == '}' && !after_key_);
  if (comma_)
    out_ += ",";
  write_string(name, out_);
  out_ += ":";
  comma_ = false;
  after_key_ = true;
}

void JsonWriter::literal(std::string_view text) {
  before_value();
  out_ += text;
}

bool JsonWriter::text(std::string_view bytes) {
  before_value();
  return write_string(bytes, out_);
}

void JsonWriter::integer(std::int64_t number) {
  if (number > kExact || number < -kExact)
    quoted_integer(number);
  else
    plain_integer(number);
}

void JsonWriter::integer(std::uint64_t number) {
  if (number > std::uint64_t{kExact})
    quoted_integer(number);
  else
    plain_integer(number);
}

void JsonWriter::plain_integer(std::int64_t number) {
  literal(Digits(number).text());
}

void JsonWriter::plain_integer(std::uint64_t number) {
  literal(Digits(number).text());
}

void JsonWriter::quoted_integer(std::int64_t number) {
  text(Digits(number).text());
}

void JsonWriter::quoted_integer(std::uint64_t number) {
  text(Digits(number).text());
}

void JsonWriter::real(double number) {
  if (std::isnan(number))
    return value("NaN");
  if (std::isinf(number))
    return value(number > 0 ? "Infinity" : "-Infinity");
  std::string digits = fmt::format("{}", number);
  if (digits.find_first_not_of("-0123456789") == digits.npos)
    digits += ".0";
  literal(digits);
}

void JsonWriter::members(std::string_view object) {
  assert(!open_.empty() && open_.back() == '}' && !after_key_);
  assert(object.size() >= 2 && object.front() == '{' && object.back() == '}');
  const std::string_view inside = object.substr(1, object.size() - 2);
  if (inside.empty())
    return;
  if (comma_)
    out_ += ",";
  out_ += inside;
  comma_ = true;
}

bool JsonWriter::keeps(std::string_view bytes) {
  while (!bytes.empty()) {
    if (const std::size_t size = printable_ascii_prefix(bytes); size > 0) {
      bytes.remove_prefix(size);
      continue;
    }
    const Utf8Character character = decode_utf8(bytes);
    if (character.kind == Utf8Kind::kInvalid)
      return false;
    bytes.remove_prefix(character.size);
  }
  return true;
}

void JsonWriter::mark_escaped(std::string_view name) {
  key(std::string(name) + "_escaped");
  value(true);
}

}  // namespace postflight
