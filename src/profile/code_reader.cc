#include "profile/code_reader.h"

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "profile/line_table.h"

namespace postflight {
namespace {

// ob_type, and the number of items behind it, in every version.
constexpr std::uint64_t kTypeOffset = 8;
constexpr std::uint64_t kSizeOffset = 16;
constexpr std::uint64_t kBytesOffset = 32;
constexpr std::uint64_t kTextLength = 16;
constexpr std::uint64_t kTextState = 32;
constexpr char32_t kLastCharacter = 0x10ffff;
constexpr char32_t kReplacement = 0xfffd;

struct TextState {
  std::size_t width = 1;  // bytes a character
  bool ascii = false;
};

// How many bits say whether the text is interned differs between versions: the
// first reading that makes sense is taken, for the others see zeros.
std::optional<TextState> text_state(std::uint32_t bits) {
  for (const unsigned shift : {2U, 8U, 16U}) {
    const std::uint32_t rest = bits >> shift;
    const std::uint32_t width = rest & 7;
    const bool compact = (rest >> 3 & 1) != 0;
    const bool ascii = (rest >> 4 & 1) != 0;
    if (compact && (width == 1 || width == 2 || width == 4))
      return TextState{width, ascii};
  }
  return std::nullopt;
}

std::string to_utf8(Bytes bytes, std::size_t width) {
  std::string text;
  for (; bytes.size() >= width; bytes = bytes.subspan(width)) {
    char32_t point = std::to_integer<std::uint8_t>(bytes[0]);
    if (width == 2)
      point = load_little_endian<std::uint16_t>(bytes.data());
    else if (width == 4)
      point = load_little_endian<std::uint32_t>(bytes.data());
    append_utf8(point <= kLastCharacter ? point : kReplacement, text);
  }
  return text;
}

}  // namespace

std::optional<std::string> read_python_text(const Memory& memory,
                                            const PythonLayout& layout,
                                            std::uint64_t address,
                                            std::size_t most) {
  std::array<std::byte, kTextState + 4> header;
  if (!memory.read(address, header))
    return std::nullopt;
  const auto length =
      load_little_endian<std::uint64_t>(header.data() + kTextLength);
  const auto state =
      text_state(load_little_endian<std::uint32_t>(header.data() + kTextState));
  if (!state)
    return std::nullopt;
  const std::size_t count = std::min<std::uint64_t>(length, most);
  std::vector<std::byte> bytes(count * state->width);
  const std::uint64_t at =
      address + (state->ascii ? layout.ascii_header : layout.compact_header);
  if (!bytes.empty() && !memory.read(at, bytes))
    return std::nullopt;
  if (state->ascii)
    return std::string(as_text(bytes));
  return to_utf8(bytes, state->width);
}

CodeReader::CodeReader(const Memory& memory, const PythonRuntime& runtime)
    : memory_(memory), runtime_(runtime) {}

std::optional<CodeReader::Identity> CodeReader::identify(
    std::uint64_t address) const {
  const PythonLayout::Code& at = runtime_.layout.code;
  std::array<std::byte, 256> bytes;
  const std::size_t size = std::max(
      {at.filename + 8, at.name + 8, at.first_line + 4, at.line_table + 8});
  if (address == 0 || size > bytes.size() ||
      !memory_.read(address, std::span(bytes).first(size)))
    return std::nullopt;
  const auto word = [&bytes](std::size_t offset) {
    return load_little_endian<std::uint64_t>(bytes.data() + offset);
  };
  const Identity identity = {.type = word(kTypeOffset),
                             .name = word(at.name),
                             .file = word(at.filename),
                             .line_table = word(at.line_table),
                             .first_line = load_little_endian<std::int32_t>(
                                 bytes.data() + at.first_line)};
  if (runtime_.code_type != 0 && identity.type != runtime_.code_type)
    return std::nullopt;
  return identity;
}

std::optional<PythonCode> CodeReader::read(const Identity& identity) const {
  const Limits limits;
  const PythonLayout& layout = runtime_.layout;
  auto name =
      read_python_text(memory_, layout, identity.name, limits.max_python_name);
  auto file =
      read_python_text(memory_, layout, identity.file, limits.max_python_name);
  if (!name || !file)
    return std::nullopt;
  PythonCode code = {.name = *std::move(name),
                     .file = *std::move(file),
                     .first_line = identity.first_line};
  // Without the table there are still name and file.
  const auto size =
      memory_.load<std::uint64_t>(identity.line_table + kSizeOffset);
  if (size && *size <= limits.max_line_table_bytes) {
    code.line_table.resize(*size);
    if (*size != 0 &&
        !memory_.read(identity.line_table + kBytesOffset, code.line_table))
      code.line_table.clear();
  }
  return code;
}

const PythonCode* CodeReader::find(std::uint64_t address) {
  const std::optional<Identity> identity = identify(address);
  if (!identity)
    return nullptr;
  const auto [known, fresh] = known_.try_emplace(address);
  if (fresh || known->second.identity != *identity) {
    known->second = {*identity, read(*identity)};
    // What died while it was read may have been overwritten.
    if (identify(address) != identity)
      known->second = {};
  }
  return known->second.code ? &*known->second.code : nullptr;
}

std::int32_t CodeReader::line(const PythonCode& code,
                              const RawFrame& frame) const {
  const PythonLayout& layout = runtime_.layout;
  // Unsigned, for anything may stand there; before the first instruction the
  // difference is negative.
  std::uint64_t difference = frame.instruction;
  if (layout.code.instructions)
    difference -= frame.code + *layout.code.instructions;
  else
    difference *= layout.instruction_unit;
  const auto offset = static_cast<std::int64_t>(difference);
  return line_of(layout.lines, code.line_table, code.first_line, offset)
      .value_or(code.first_line);
}

}  // namespace postflight
