#include "profile/native/unwind_table.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace postflight {
namespace {

// Reads DWARF's numbers. Beyond the end it returns zeros, and ok() is false.
class DwarfReader {
 public:
  explicit DwarfReader(Bytes bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  bool at_end() const { return at_ >= bytes_.size(); }
  std::size_t offset() const { return at_; }
  Bytes rest() const { return bytes_.subspan(std::min(at_, bytes_.size())); }

  template <class T>
  T fixed() {
    if (bytes_.size() - at_ < sizeof(T)) {
      ok_ = false;
      at_ = bytes_.size();
      return 0;
    }
    const T value = load_little_endian<T>(bytes_.data() + at_);
    at_ += sizeof(T);
    return value;
  }

  void skip(std::uint64_t count) {
    if (count > bytes_.size() - at_) {
      ok_ = false;
      count = bytes_.size() - at_;
    }
    at_ += count;
  }

  std::uint64_t unsigned_leb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = fixed<std::uint8_t>();
      if (shift < 64)
        value |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80) == 0 || !ok_)
        return value;
    }
  }

  std::int64_t signed_leb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;;) {
      const auto byte = fixed<std::uint8_t>();
      if (shift < 64)
        value |= std::uint64_t{byte & 0x7fU} << shift;
      shift += 7;
      if ((byte & 0x80) != 0 && ok_)
        continue;
      if ((byte & 0x40) != 0 && shift < 64)
        value |= ~std::uint64_t{0} << shift;
      return static_cast<std::int64_t>(value);
    }
  }

  std::string_view text() {
    const std::string_view left = as_text(rest());
    const std::size_t end = left.find('\0');
    if (end == std::string_view::npos) {
      ok_ = false;
      return {};
    }
    at_ += end + 1;
    return left.substr(0, end);
  }

  // An address in one of the encodings of .eh_frame; `section` is the address
  // of the section's first byte.
  std::uint64_t pointer(std::uint8_t encoding, std::uint64_t section) {
    const std::uint64_t here = section + at_;
    std::uint64_t value = 0;
    switch (encoding & 0x0f) {
      case 0x00:
      case 0x04:
      case 0x0c:
        value = fixed<std::uint64_t>();
        break;
      case 0x03:
        value = fixed<std::uint32_t>();
        break;
      case 0x0b:
        value = static_cast<std::uint64_t>(
            static_cast<std::int64_t>(fixed<std::int32_t>()));
        break;
      default:
        ok_ = false;
    }
    if ((encoding & 0x70) == 0x10)
      value += here;
    else if ((encoding & 0x70) != 0)
      ok_ = false;
    return value;
  }

 private:
  Bytes bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

// rsp + 8, and 8 more after the first 11 of every 16 bytes: how all linkers
// describe a PLT.
constexpr std::array<std::uint8_t, 11> kPltExpression = {
    0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};

bool is_plt(Bytes expression) {
  return std::ranges::equal(expression, kPltExpression,
                            [](std::byte a, std::uint8_t b) {
                              return std::to_integer<std::uint8_t>(a) == b;
                            });
}

constexpr std::size_t kMostRemembered = 64;

}  // namespace

// Executes the call frame instructions of one function up to an address.
class UnwindTable::Decoder {
 public:
  Decoder(const Common& common, std::uint64_t start, std::uint64_t target)
      : common_(common), at_(start), target_(target) {}

  void run(Bytes instructions) {
    DwarfReader reader(instructions);
    while (!reader.at_end() && reader.ok() && at_ <= target_ && step(reader)) {
    }
  }
  void keep_as_initial() { initial_ = row_; }
  const UnwindRow& row() const { return row_; }

 private:
  void rule(std::uint64_t number, UnwindRule::Kind kind,
            std::int64_t offset = 0) {
    if (number < kUnwindRegisters)
      row_.rules[number] = {kind, offset};
  }
  void restore(std::uint64_t number) {
    if (number < kUnwindRegisters)
      row_.rules[number] = initial_.rules[number];
  }
  // Factors are small; a product that overflows is not a valid offset anyway.
  std::int64_t scaled(std::int64_t factor) const {
    return checked_multiply(factor, common_.data_alignment).value_or(0);
  }
  std::int64_t scaled(std::uint64_t factor) const {
    return scaled(static_cast<std::int64_t>(factor));
  }
  // False if the target address is before the next row.
  bool advance(std::uint64_t by) {
    at_ += by * common_.code_alignment;
    return at_ <= target_;
  }
  void frame_at(std::uint64_t number, std::int64_t offset) {
    row_.frame = number < kUnwindRegisters ? UnwindRow::Frame::kRegister
                                           : UnwindRow::Frame::kUnknown;
    row_.frame_register = number;
    row_.frame_offset = offset;
  }

  bool step(DwarfReader& reader) {
    const auto code = reader.fixed<std::uint8_t>();
    const std::uint64_t low = code & 0x3f;
    switch (code >> 6) {
      case 1:
        return advance(low);
      case 2:
        rule(low, UnwindRule::Kind::kAtOffset, scaled(reader.unsigned_leb()));
        return true;
      case 3:
        restore(low);
        return true;
      default:
        return extended(code, reader);
    }
  }

  bool extended(std::uint8_t code, DwarfReader& reader) {
    using enum UnwindRule::Kind;
    switch (code) {
      case 0x00:  // nop
        return true;
      case 0x02:
        return advance(reader.fixed<std::uint8_t>());
      case 0x03:
        return advance(reader.fixed<std::uint16_t>());
      case 0x04:
        return advance(reader.fixed<std::uint32_t>());
      case 0x05: {  // offset_extended
        const std::uint64_t number = reader.unsigned_leb();
        rule(number, kAtOffset, scaled(reader.unsigned_leb()));
        return true;
      }
      case 0x06:
        restore(reader.unsigned_leb());
        return true;
      case 0x07:
        rule(reader.unsigned_leb(), kUndefined);
        return true;
      case 0x08:
        rule(reader.unsigned_leb(), kSame);
        return true;
      case 0x09: {  // in another register
        const std::uint64_t number = reader.unsigned_leb();
        reader.unsigned_leb();
        rule(number, kUnknown);
        return true;
      }
      case 0x0a:
        if (remembered_.size() == kMostRemembered)
          return false;
        remembered_.push_back(row_);
        return true;
      case 0x0b:
        if (remembered_.empty())
          return false;
        row_ = remembered_.back();
        remembered_.pop_back();
        return true;
      case 0x0c: {  // def_cfa
        const std::uint64_t number = reader.unsigned_leb();
        frame_at(number, static_cast<std::int64_t>(reader.unsigned_leb()));
        return true;
      }
      case 0x0d:
        frame_at(reader.unsigned_leb(), row_.frame_offset);
        return true;
      case 0x0e:
        row_.frame_offset = static_cast<std::int64_t>(reader.unsigned_leb());
        return true;
      case 0x0f: {  // def_cfa_expression
        const std::uint64_t size = reader.unsigned_leb();
        const Bytes rest = reader.rest();
        row_.frame = size <= rest.size() && is_plt(rest.first(size))
                         ? UnwindRow::Frame::kPlt
                         : UnwindRow::Frame::kUnknown;
        reader.skip(size);
        return true;
      }
      case 0x10:    // expression
      case 0x14:    // val_offset
      case 0x15:    // val_offset_sf
      case 0x16: {  // val_expression
        rule(reader.unsigned_leb(), kUnknown);
        const std::uint64_t operand = reader.unsigned_leb();
        if (code == 0x10 || code == 0x16)
          reader.skip(operand);
        return true;
      }
      case 0x11: {  // offset_extended_sf
        const std::uint64_t number = reader.unsigned_leb();
        rule(number, kAtOffset, scaled(reader.signed_leb()));
        return true;
      }
      case 0x12: {  // def_cfa_sf
        const std::uint64_t number = reader.unsigned_leb();
        frame_at(number, scaled(reader.signed_leb()));
        return true;
      }
      case 0x13:
        row_.frame_offset = scaled(reader.signed_leb());
        return true;
      case 0x2e:  // GNU_args_size
        reader.unsigned_leb();
        return true;
      default:
        row_.frame = UnwindRow::Frame::kUnknown;
        return false;
    }
  }

  const Common& common_;
  std::uint64_t at_;
  std::uint64_t target_;
  UnwindRow row_;
  UnwindRow initial_;
  std::vector<UnwindRow> remembered_;
};

UnwindTable UnwindTable::parse(const ElfImage& image) {
  UnwindTable table;
  const ElfSection* const section = image.section(".eh_frame");
  if (section == nullptr)
    return table;
  std::map<std::size_t, std::uint32_t> common_at;
  DwarfReader reader(section->bytes);
  while (!reader.at_end()) {
    const std::size_t entry = reader.offset();
    const auto size = reader.fixed<std::uint32_t>();
    const std::size_t body = reader.offset();
    // Zero ends the list; no compiler writes 64-bit sizes.
    if (!reader.ok() || size < 4 || size == UINT32_MAX ||
        size > section->bytes.size() - body)
      break;
    const Bytes bytes = section->bytes.subspan(body, size);
    DwarfReader fields(bytes);
    const auto id = fields.fixed<std::uint32_t>();
    if (id == 0) {
      Common common;
      const auto version = fields.fixed<std::uint8_t>();
      const std::string_view augmentation = fields.text();
      common.code_alignment = fields.unsigned_leb();
      common.data_alignment = fields.signed_leb();
      if (version == 1)
        fields.fixed<std::uint8_t>();
      else
        fields.unsigned_leb();
      bool understood = version == 1 || version == 3;
      if (augmentation.starts_with('z')) {
        common.augmented = true;
        const std::uint64_t length = fields.unsigned_leb();
        const std::size_t end =
            fields.offset() + std::min<std::uint64_t>(length, bytes.size());
        for (const char letter : augmentation.substr(1)) {
          if (letter == 'R')
            common.pointer_encoding = fields.fixed<std::uint8_t>();
          else if (letter == 'L')
            fields.fixed<std::uint8_t>();
          else if (letter == 'P')
            fields.pointer(fields.fixed<std::uint8_t>() & 0x0f, 0);
          else if (letter != 'S' && letter != 'B')
            understood = false;
        }
        if (fields.offset() > end)
          understood = false;
        else
          fields.skip(end - fields.offset());
      } else if (!augmentation.empty()) {
        understood = false;
      }
      common.instructions = fields.rest();
      if (understood && fields.ok()) {
        common_at[entry] = static_cast<std::uint32_t>(table.commons_.size());
        table.commons_.push_back(common);
      }
    } else if (const auto common =
                   id <= body ? common_at.find(body - id) : common_at.end();
               common != common_at.end()) {
      const Common& its = table.commons_[common->second];
      Function function = {.common = common->second};
      // PC-relative pointers are relative to their own address.
      function.start =
          fields.pointer(its.pointer_encoding, section->address + body);
      function.end =
          function.start + fields.pointer(its.pointer_encoding & 0x0f, 0);
      if (its.augmented)
        fields.skip(fields.unsigned_leb());
      function.instructions = fields.rest();
      if (fields.ok() && function.start < function.end)
        table.functions_.push_back(function);
    }
    reader.skip(size);
  }
  std::ranges::stable_sort(table.functions_, {}, &Function::start);
  return table;
}

const UnwindTable::Function* UnwindTable::find(std::uint64_t address) const {
  const auto after =
      std::ranges::upper_bound(functions_, address, {}, &Function::start);
  if (after == functions_.begin())
    return nullptr;
  const Function& function = *std::prev(after);
  return address < function.end ? &function : nullptr;
}

std::optional<std::uint64_t> UnwindTable::function_start(
    std::uint64_t address) const {
  const Function* const function = find(address);
  return function == nullptr ? std::nullopt : std::optional(function->start);
}

std::optional<UnwindRow> UnwindTable::row(std::uint64_t address) const {
  const Function* const function = find(address);
  if (function == nullptr)
    return std::nullopt;
  const Common& common = commons_[function->common];
  Decoder decoder(common, function->start, address);
  decoder.run(common.instructions);
  decoder.keep_as_initial();
  decoder.run(function->instructions);
  return decoder.row();
}

}  // namespace postflight
