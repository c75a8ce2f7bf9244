#include "profile/agent/codes.h"

#include <atomic>
#include <optional>

#include "profile/agent/fault_guard.h"
#include "profile/agent/memory.h"
#include "profile/agent/python_text.h"

namespace postflight {
namespace {

constexpr std::uint64_t kMostCharacters = 1'000;
constexpr std::uint64_t kMostLineTable = 16 << 10;
constexpr std::size_t kSlotBits = 13;

// A cache of the code objects that the engine has been told of. Threads may
// race for a slot; a mixed-up one only costs another record.
struct Slot {
  std::atomic<std::uint64_t> code;
  std::atomic<std::uint64_t> identity;
};
Slot told[std::size_t{1} << kSlotBits];
std::atomic<std::uint64_t> generation = 1;

constexpr std::uint64_t mixed(std::uint64_t state, std::uint64_t word) {
  state = (state ^ word) * 0x9e3779b97f4a7c15;
  return state ^ (state >> 32);
}

// A range of memory that belongs to a code object.
struct Piece {
  std::uint64_t address = 0;
  std::uint64_t size = 0;

  std::uint64_t padded() const { return (size + 7) & ~std::uint64_t{7}; }
};

struct CodePieces {
  Piece pieces[4];  // the object, its name, its file, its line table
};

std::uint64_t text_size(std::uint64_t address, const RingLayout& layout) {
  std::uint64_t length = 0;
  std::uint64_t bits = 0;
  if (!guarded_word(address + kTextLength, length) ||
      !guarded_word(address + kTextState, bits) || length > kMostCharacters)
    return 0;
  const std::optional<TextState> state =
      text_state(static_cast<std::uint32_t>(bits));
  if (!state)
    return 0;
  return (state->ascii ? layout.ascii_header : layout.compact_header) +
         length * state->width;
}

std::uint64_t table_size(std::uint64_t address) {
  std::uint64_t size = 0;
  if (!guarded_word(address + kBytesLength, size) || size > kMostLineTable)
    return 0;
  return kBytesOffset + size;
}

// The last word of a range of at least 8 bytes, else 0.
std::uint64_t last_word(std::uint64_t end, std::uint64_t size) {
  std::uint64_t word = 0;
  return size >= 8 && guarded_word(end - 8, word) ? word : 0;
}

bool copy_piece(const Piece& piece, std::uint64_t* to) {
  for (std::uint64_t at = 0; at < piece.size; at += 8)
    if (!guarded_word(piece.address + at, to[at / 8]))
      return false;
  return true;
}

// False if the ring is full.
bool tell(Arena& arena, std::uint64_t address) {
  const RingLayout& layout = arena.ring()->layout;
  CodePieces code;
  code.pieces[0] = {address, layout.code_size};
  if (!guarded_word(address + layout.code_name, code.pieces[1].address) ||
      !guarded_word(address + layout.code_file, code.pieces[2].address) ||
      !guarded_word(address + layout.code_line_table, code.pieces[3].address))
    return true;
  code.pieces[1].size = text_size(code.pieces[1].address, layout);
  code.pieces[2].size = text_size(code.pieces[2].address, layout);
  code.pieces[3].size = table_size(code.pieces[3].address);
  std::uint64_t size = sizeof(RingRecord);
  for (const Piece& piece : code.pieces)
    size += sizeof(Piece) + piece.padded();
  std::byte* const place =
      arena.reserve_record(static_cast<std::uint32_t>(size));
  if (place == nullptr)
    return false;
  auto* const record = reinterpret_cast<RingRecord*>(place);
  record->kind = kRecordOfCode;
  auto* to = reinterpret_cast<std::uint64_t*>(place + sizeof(RingRecord));
  for (const Piece& piece : code.pieces) {
    to[0] = piece.address;
    to[1] = piece.size;
    if (!copy_piece(piece, to + 2))
      record->kind = 0;
    to += 2 + piece.padded() / 8;
  }
  record->size.store(static_cast<std::uint32_t>(size),
                     std::memory_order_release);
  return true;
}

}  // namespace

std::uint64_t code_identity(std::uint64_t code, const RingLayout& layout) {
  std::uint64_t name = 0;
  std::uint64_t file = 0;
  std::uint64_t table = 0;
  std::uint64_t line = 0;
  std::uint64_t length = 0;
  std::uint64_t table_length = 0;
  std::uint64_t name_length = 0;
  if (!guarded_word(code + layout.code_name, name) ||
      !guarded_word(code + layout.code_file, file) ||
      !guarded_word(code + layout.code_line_table, table) ||
      !guarded_word(code + layout.code_first_line, line) ||
      !guarded_word(file + kTextLength, length) ||
      !guarded_word(name + kTextLength, name_length) ||
      !guarded_word(table + kBytesLength, table_length))
    return 0;
  // Paths differ at their ends more often than at their fronts. The length of a
  // wide string is not its size, but what is read then is still part of it.
  const std::uint64_t text = file + layout.ascii_header;
  std::uint64_t identity = mixed(name, file);
  identity = mixed(identity, table ^ (line << 32));
  identity = mixed(identity, length ^ (table_length << 32));
  identity = mixed(identity, last_word(text + length, length));
  if (length >= 16)
    identity = mixed(identity, last_word(text + length - 8, length - 8));
  const std::uint64_t name_text = name + layout.ascii_header;
  std::uint64_t name_end = 0;
  if (guarded_word(name_text + (name_length < 8 ? 0 : name_length - 8),
                   name_end))
    identity = mixed(identity, name_end ^ (name_length << 32));
  identity = mixed(
      identity, last_word(table + kBytesOffset + table_length, table_length));
  return identity == 0 ? 1 : identity;
}

void tell_codes(Arena& arena, const std::uint64_t* frames,
                const std::uint64_t* identities, std::uint32_t count) {
  if (arena.ring()->layout.code_size == 0)
    return;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (identities[i] == 0)
      continue;
    const std::uint64_t code = frames[std::size_t{2} * i];
    const std::uint64_t identity = mixed(generation, identities[i]);
    Slot& slot = told[mixed(0, code) >> (64 - kSlotBits)];
    if (slot.code.load(std::memory_order_relaxed) == code &&
        slot.identity.load(std::memory_order_relaxed) == identity)
      continue;
    if (!tell(arena, code))
      return;
    slot.code.store(code, std::memory_order_relaxed);
    slot.identity.store(identity, std::memory_order_relaxed);
  }
}

void forget_codes() {
  ++generation;
}

}  // namespace postflight
