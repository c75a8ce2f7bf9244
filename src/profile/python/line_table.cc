#include "profile/python/line_table.h"

#include <algorithm>

namespace postflight {
namespace {

// Lines are counted in 64 bits, which no table of arbitrary bytes can overflow.
std::optional<std::int32_t> as_line(std::int64_t line) {
  if (line <= 0 || line > INT32_MAX)
    return std::nullopt;
  return static_cast<std::int32_t>(line);
}

std::optional<std::int32_t> line_in_deltas(Bytes table, std::int64_t line,
                                           std::int64_t offset) {
  std::int64_t at = 0;
  for (; table.size() >= 2; table = table.subspan(2)) {
    at += std::to_integer<std::uint8_t>(table[0]);
    if (at > offset)
      break;
    line += static_cast<std::int8_t>(table[1]);
  }
  return as_line(line);
}

std::optional<std::int32_t> line_in_ranges(Bytes table, std::int64_t line,
                                           std::int64_t offset) {
  constexpr std::int8_t kNoLine = -128;
  std::int64_t end = 0;
  for (; table.size() >= 2; table = table.subspan(2)) {
    const auto delta = static_cast<std::int8_t>(table[1]);
    if (delta != kNoLine)
      line += delta;
    end += std::to_integer<std::uint8_t>(table[0]);
    if (offset < end)
      return delta == kNoLine ? std::nullopt : as_line(line);
  }
  return std::nullopt;
}

// Six bits per byte, the low ones first; the seventh says that more follow.
std::uint64_t take_varint(Bytes& table) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; !table.empty(); shift += 6) {
    const auto byte = std::to_integer<std::uint64_t>(table.front());
    table = table.subspan(1);
    if (shift < 60)
      value |= (byte & 0x3f) << shift;
    if ((byte & 0x40) == 0)
      break;
  }
  return value;
}

std::int64_t take_signed_varint(Bytes& table) {
  const std::uint64_t value = take_varint(table);
  const auto size = static_cast<std::int64_t>(value >> 1);
  return (value & 1) != 0 ? -size : size;
}

// Ignores an addition that overflows.
std::int64_t moved(std::int64_t line, std::int64_t by) {
  return checked_add(line, by).value_or(line);
}

std::optional<std::int32_t> line_in_locations(Bytes table, std::int64_t line,
                                              std::int64_t offset) {
  constexpr unsigned kShortForms = 10;
  constexpr unsigned kNoColumns = 13;
  constexpr unsigned kLong = 14;
  constexpr unsigned kNone = 15;
  std::int64_t end = 0;
  while (!table.empty()) {
    const auto first = std::to_integer<unsigned>(table.front());
    table = table.subspan(1);
    const unsigned form = first >> 3 & 15;
    end += 2 * static_cast<std::int64_t>((first & 7) + 1);
    if (form == kLong) {
      line = moved(line, take_signed_varint(table));
      for (int i = 0; i < 3; ++i)
        take_varint(table);
    } else if (form == kNoColumns) {
      line = moved(line, take_signed_varint(table));
    } else if (form != kNone) {
      const std::size_t columns = form < kShortForms ? 1 : 2;
      if (form > kShortForms)
        line = moved(line, form - kShortForms);
      table = table.subspan(std::min(columns, table.size()));
    }
    if (offset < end)
      return form == kNone ? std::nullopt : as_line(line);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int32_t> line_of(LineTableKind kind, Bytes table,
                                    std::int32_t first_line,
                                    std::int64_t offset) {
  if (offset < 0)
    return as_line(first_line);
  switch (kind) {
    case LineTableKind::kDeltas:
      return line_in_deltas(table, first_line, offset);
    case LineTableKind::kRanges:
      return line_in_ranges(table, first_line, offset);
    case LineTableKind::kLocations:
      return line_in_locations(table, first_line, offset);
  }
  return std::nullopt;
}

}  // namespace postflight
