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

// What is compared of a name, a file and a line table, with their headers.
constexpr std::size_t kContentBytes = 192;
constexpr std::size_t kTexts = 3;

std::uint64_t mixed_hash(std::uint64_t state, std::uint64_t word) {
  state = (state ^ word) * 0x9e3779b97f4a7c15;
  return state ^ (state >> 32);
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
  std::array<std::byte, 256> bytes;
  const std::size_t size = runtime_.layout.code.size();
  if (address == 0 || size > bytes.size() ||
      !memory.read(address, std::span(bytes).first(size)))
    return std::nullopt;
  const Identity identity = identity_in(bytes);
  if (runtime_.code_type != 0 && identity.type != runtime_.code_type)
    return std::nullopt;
  return identity;
}

CodeReader::Identity CodeReader::identity_in(Bytes code) const {
  const PythonLayout::Code& at = runtime_.layout.code;
  const auto word = [&code](std::size_t offset) {
    return load_little_endian<std::uint64_t>(code.data() + offset);
  };
  return {.type = word(kTypeOffset),
          .name = word(at.name),
          .file = word(at.filename),
          .line_table = word(at.line_table),
          .first_line =
              load_little_endian<std::int32_t>(code.data() + at.first_line)};
}

// The lengths and some of the text; what cannot be read counts as empty.
void CodeReader::read_contents(std::span<Identity> identities) const {
  struct Front {
    std::array<std::array<std::byte, kContentBytes>, kTexts> bytes = {};
  };
  std::vector<Front> fronts(identities.size());
  std::vector<MemoryPiece> pieces;
  for (std::size_t i = 0; i < identities.size(); ++i) {
    const std::array<std::uint64_t, kTexts> addresses = {
        identities[i].file, identities[i].name, identities[i].line_table};
    for (std::size_t text = 0; text < kTexts; ++text)
      pieces.push_back({addresses[text], fronts[i].bytes[text]});
  }
  for (std::span<const MemoryPiece> rest = pieces; !rest.empty();) {
    const std::size_t done = memory_.read(rest);
    rest = rest.subspan(done);
    if (rest.empty())
      break;
    // It ends with its mapping, or is not valid.
    std::span<std::byte> to = rest.front().to;
    while (to.size() > kContentBytes / 4 &&
           !memory_.read(rest.front().address, to))
      to = to.first(to.size() - kContentBytes / 4);
    rest = rest.subspan(1);
  }
  for (std::size_t i = 0; i < identities.size(); ++i) {
    std::uint64_t hash = 0;
    for (std::size_t text = 0; text < kTexts; ++text) {
      const auto& bytes = fronts[i].bytes[text];
      const auto length =
          load_little_endian<std::uint64_t>(bytes.data() + kTextLength);
      const std::uint64_t header =
          text == kTexts - 1 ? kBytesOffset : runtime_.layout.ascii_header;
      hash = mixed_hash(hash, length);
      for (std::uint64_t at = header;
           at + 8 <= kContentBytes && at < header + length; at += 8)
        hash = mixed_hash(hash,
                          load_little_endian<std::uint64_t>(bytes.data() + at));
    }
    identities[i].contents = hash;
  }
}

void CodeReader::check(std::span<const std::uint64_t> addresses) {
  constexpr std::size_t kCodeBytes = 256;
  const std::size_t size = runtime_.layout.code.size();
  std::vector<std::uint64_t> known;
  for (const std::uint64_t address : addresses) {
    const auto found = known_.find(address);
    if (found == known_.end())
      continue;
    if (!found->second.copied) {
      known.push_back(address);
      continue;
    }
    // The agent has copied it at some time; that is not what is there now.
    const std::optional<Identity> identity = identify(memory_, address);
    if (identity && read_alive(address, *identity) == found->second.code)
      continue;
    known_.erase(found);
    ++changes_;
  }
  std::vector<std::array<std::byte, kCodeBytes>> bytes(known.size());
  std::vector<MemoryPiece> pieces;
  for (std::size_t i = 0; i < known.size(); ++i)
    pieces.push_back({known[i], std::span(bytes[i]).first(size)});
  const std::size_t done = memory_.read(pieces);
  std::vector<Identity> now;
  for (std::size_t i = 0; i < done; ++i)
    now.push_back(identity_in(bytes[i]));
  read_contents(now);
  for (std::size_t i = 0; i < known.size(); ++i) {
    const auto at = known_.find(known[i]);
    if (at == known_.end() || (i < done && at->second.identity == now[i]))
      continue;
    known_.erase(at);
    ++changes_;
  }
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
  const PythonCode* const code = look_up(address);
  misses_ += code == nullptr ? 1 : 0;
  return code;
}

const PythonCode* CodeReader::look_up(std::uint64_t address) {
  const auto [known, fresh] = known_.try_emplace(address);
  if (known->second.copied)
    return &*known->second.code;
  std::optional<Identity> identity = identify(memory_, address);
  if (!identity)
    return nullptr;
  read_contents({&*identity, 1});
  if (fresh || known->second.identity != *identity) {
    changes_ += fresh ? 0 : 1;
    known->second = {*identity, read_alive(address, *identity)};
  }
  return known->second.code ? &*known->second.code : nullptr;
}

// An object that is freed while it is read may be overwritten.
std::optional<PythonCode> CodeReader::read_alive(
    std::uint64_t address, const Identity& identity) const {
  std::optional<PythonCode> code = read(memory_, identity);
  std::optional<Identity> after = identify(memory_, address);
  if (after)
    after->contents = identity.contents;
  return after == identity ? code : std::nullopt;
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
  if (!code)
    return;
  Known& known = known_[address];
  changes_ += known.code && known.code != code ? 1 : 0;
  known = {*identity, std::move(code), true};
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
