#include "profile/python/code_reader.h"

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "profile/agent/python_text.h"
#include "profile/python/line_table.h"

namespace postflight {
namespace {

// Offset of ob_type, in every version.
constexpr std::uint64_t kTypeOffset = 8;
constexpr char32_t kLastCharacter = 0x10ffff;
constexpr char32_t kReplacement = 0xfffd;

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

// Copied memory as a Memory.
class CopiedMemory final : public Memory {
 public:
  explicit CopiedMemory(std::span<const MemoryCopy> copies) : copies_(copies) {}

  using Memory::read;
  std::size_t read(std::span<const MemoryPiece> pieces) const override {
    for (std::size_t i = 0; i < pieces.size(); ++i)
      if (!copy(pieces[i]))
        return i;
    return pieces.size();
  }

 private:
  bool copy(const MemoryPiece& piece) const {
    for (const auto& [address, bytes] : copies_) {
      const std::uint64_t offset = piece.address - address;
      if (offset > bytes.size() || piece.to.size() > bytes.size() - offset)
        continue;
      copy_bytes(bytes.subspan(offset, piece.to.size()), piece.to);
      return true;
    }
    return false;
  }

  std::span<const MemoryCopy> copies_;
};

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

CodeReader::CodeReader(const Memory& memory, const PythonRuntime& runtime,
                       const Limits& limits)
    : memory_(memory), runtime_(runtime), limits_(limits) {}

std::optional<CodeReader::Identity> CodeReader::identify(
    const Memory& memory, std::uint64_t address) const {
  const PythonLayout::Code& at = runtime_.layout.code;
  std::array<std::byte, 256> bytes;
  const std::size_t size = at.size();
  if (address == 0 || size > bytes.size() ||
      !memory.read(address, std::span(bytes).first(size)))
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

std::optional<PythonCode> CodeReader::read(const Memory& memory,
                                           const Identity& identity) const {
  const PythonLayout& layout = runtime_.layout;
  auto name =
      read_python_text(memory, layout, identity.name, limits_.max_python_name);
  auto file =
      read_python_text(memory, layout, identity.file, limits_.max_python_name);
  if (!name || !file)
    return std::nullopt;
  PythonCode code = {.name = *std::move(name),
                     .file = *std::move(file),
                     .first_line = identity.first_line};
  // Without a line table there are still name and file.
  const auto size =
      memory.load<std::uint64_t>(identity.line_table + kBytesLength);
  if (size && *size <= limits_.max_line_table_bytes) {
    code.line_table.resize(*size);
    if (*size != 0 &&
        !memory.read(identity.line_table + kBytesOffset, code.line_table))
      code.line_table.clear();
  }
  return code;
}

const PythonCode* CodeReader::find(std::uint64_t address) {
  const auto [known, fresh] = known_.try_emplace(address);
  if (known->second.copied)
    return &*known->second.code;
  const std::optional<Identity> identity = identify(memory_, address);
  if (!identity)
    return nullptr;
  if (fresh || known->second.identity != *identity)
    known->second = {*identity, read_alive(address, *identity)};
  return known->second.code ? &*known->second.code : nullptr;
}

// An object that is freed while it is read may be overwritten.
std::optional<PythonCode> CodeReader::read_alive(
    std::uint64_t address, const Identity& identity) const {
  std::optional<PythonCode> code = read(memory_, identity);
  return identify(memory_, address) == identity ? code : std::nullopt;
}

void CodeReader::learn(std::span<const MemoryCopy> copies) {
  if (copies.empty())
    return;
  const CopiedMemory memory(copies);
  const std::uint64_t address = copies.front().address;
  const std::optional<Identity> identity = identify(memory, address);
  if (!identity)
    return;
  std::optional<PythonCode> code = read(memory, *identity);
  // A long line table is not copied by the agent, but most code objects live
  // on.
  if (!code || code->line_table.empty())
    if (auto alive = read_alive(address, *identity))
      code = std::move(alive);
  if (code)
    known_[address] = {*identity, std::move(code), true};
}

std::int32_t CodeReader::line(const PythonCode& code,
                              const RawFrame& frame) const {
  const PythonLayout& layout = runtime_.layout;
  // Unsigned arithmetic, as any value is possible; before the first instruction
  // the difference is negative.
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
