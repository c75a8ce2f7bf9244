#include "stream/tar/header.h"

#include <algorithm>
#include <charconv>

namespace postflight {
namespace {

// Where POSIX puts the fields of a header.
struct Field {
  std::size_t offset;
  std::size_t size;
};
constexpr Field kName{0, 100};
constexpr Field kSize{124, 12};
constexpr Field kChecksum{148, 8};
constexpr std::size_t kType = 156;
constexpr Field kLink{157, 100};
constexpr Field kMagic{257, 6};
constexpr Field kPrefix{345, 155};

std::string_view field(Bytes block, Field where) {
  return as_text(block.subspan(where.offset, where.size));
}

// Up to the first zero byte, if there is one.
std::string_view text_field(Bytes block, Field where) {
  const std::string_view text = field(block, where);
  return text.substr(0, text.find('\0'));
}

// Octal digits between spaces and zero bytes, or, marked by the highest bit,
// the binary number that GNU tar writes where octal has too few digits.
std::optional<std::uint64_t> number_field(Bytes block, Field where) {
  std::string_view text = field(block, where);
  std::uint64_t value = 0;
  if ((text.front() & 0x80) != 0) {
    if (static_cast<unsigned char>(text.front()) != 0x80)
      return std::nullopt;
    for (const char c : text.substr(1)) {
      if (value >> 56 != 0)
        return std::nullopt;
      value = value << 8 | static_cast<unsigned char>(c);
    }
    return value;
  }
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::size_t digits =
      std::min(text.find_first_not_of("01234567"), text.size());
  for (const char c : text.substr(digits))
    if (c != ' ' && c != '\0')
      return std::nullopt;
  for (const char c : text.substr(0, digits))  // 12 digits are 36 bits
    value = value << 3 | static_cast<unsigned>(c - '0');
  return value;
}

// The sum of all bytes, with spaces in place of the checksum; some old writers
// summed signed bytes.
bool checksum_holds(Bytes block) {
  const std::string_view written = field(block, kChecksum);
  if (written.find_first_of("01234567") == written.npos)
    return false;
  const std::optional<std::uint64_t> stated = number_field(block, kChecksum);
  std::int64_t as_unsigned = 0;
  std::int64_t as_signed = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const bool own = i - kChecksum.offset < kChecksum.size;
    const auto byte = own ? std::uint8_t{' '} : std::uint8_t(block[i]);
    as_unsigned += byte;
    as_signed += static_cast<std::int8_t>(byte);
  }
  return stated && (static_cast<std::int64_t>(*stated) == as_unsigned ||
                    static_cast<std::int64_t>(*stated) == as_signed);
}

std::string path_of(Bytes block) {
  const std::string_view name = text_field(block, kName);
  // GNU tar keeps times where POSIX has the first part of the path.
  const bool posix = field(block, kMagic) == std::string_view("ustar\0", 6);
  const std::string_view prefix =
      posix ? text_field(block, kPrefix) : std::string_view();
  return prefix.empty() ? std::string(name)
                        : fmt::format("{}/{}", prefix, name);
}

std::optional<std::uint64_t> decimal(std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, failed] = std::from_chars(text.data(), end, value);
  if (failed != std::errc() || stopped != end)
    return std::nullopt;
  return value;
}

}  // namespace

Result<TarHeader> read_tar_header(Bytes block) {
  if (!checksum_holds(block))
    return fail(ErrorKind::kCorrupt, "its header has a wrong checksum");
  const std::optional<std::uint64_t> size = number_field(block, kSize);
  if (!size)
    return fail(ErrorKind::kCorrupt, "its header has no valid size");
  return TarHeader{.path = path_of(block),
                   .type = static_cast<char>(block[kType]),
                   .size = *size,
                   .link = std::string(text_field(block, kLink))};
}

bool looks_like_tar(Bytes front) {
  return front.size() >= kTarBlock && checksum_holds(front.first(kTarBlock));
}

Result<> read_pax_records(std::string_view text, PaxRecords& records) {
  while (!text.empty() && text.front() != '\0') {
    const std::size_t space = text.find(' ');
    const std::optional<std::uint64_t> length =
        space == text.npos ? std::nullopt : decimal(text.substr(0, space));
    if (!length || *length > text.size() || *length < space + 2 ||
        text[*length - 1] != '\n')
      return fail(ErrorKind::kCorrupt, "a pax record has a wrong length");
    const std::string_view record = text.substr(space + 1, *length - space - 2);
    const std::size_t equals = record.find('=');
    if (equals == record.npos)
      return fail(ErrorKind::kCorrupt, "a pax record has no value");
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = record.substr(equals + 1);
    if (key == "path")
      records.path = value;
    else if (key == "linkpath")
      records.link = value;
    else if (key.starts_with("GNU.sparse."))
      records.sparse = true;
    else if (key == "size" && !(records.size = decimal(value)))
      return fail(ErrorKind::kCorrupt, "a pax record has an invalid size: {}",
                  value);
    text.remove_prefix(*length);
  }
  return {};
}

}  // namespace postflight
