#include "pickle/text/disassembler.h"

#include <bit>
#include <cassert>
#include <cstring>
#include <string_view>
#include <utility>

#include "pickle/repr.h"
#include "pickle/text_form.h"

namespace postflight {
namespace {

// Reads the argument of one opcode from the bytes after it.
class ArgumentReader {
 public:
  ArgumentReader(Instruction& into, Bytes rest, Arena& arena,
                 const Limits& limits)
      : into_(into),
        info_(*into.info),
        rest_(as_text(rest)),
        arena_(arena),
        limits_(limits) {}

  Result<> read() {
    switch (info_.argument) {
      case Argument::kNone:
        return {};
      case Argument::kUnsigned1:
        return take_unsigned<std::uint8_t>();
      case Argument::kUnsigned2:
        return take_unsigned<std::uint16_t>();
      case Argument::kUnsigned4:
        return take_unsigned<std::uint32_t>();
      case Argument::kUnsigned8:
        return take_unsigned<std::uint64_t>();
      case Argument::kSigned4:
        set_integer(TRY(number<std::int32_t>()));
        return {};
      case Argument::kFloat8:
        into_.kind = Kind::kFloat;
        into_.floating = std::bit_cast<double>(
            __builtin_bswap64(TRY(number<std::uint64_t>())));
        return {};
      case Argument::kLine:
        return take_line();
      case Argument::kTwoLines:
        into_.kind = Kind::kGlobal;
        into_.text = TRY(line());
        into_.name = TRY(line());
        return {};
      case Argument::kBlob1:
        return take_blob<std::uint8_t>();
      case Argument::kBlob4:
        return take_blob<std::uint32_t>();
      case Argument::kSignedBlob4:
        return take_blob<std::int32_t>();
      case Argument::kBlob8:
        return take_blob<std::uint64_t>();
    }
    return {};
  }

  std::size_t left() const { return rest_.size(); }

 private:
  Result<std::string_view> take(std::uint64_t count) {
    if (count > rest_.size())
      return fail(ErrorKind::kCorrupt, "{} needs {} byte{}, {} {} left",
                  info_.name, count, count == 1 ? "" : "s", rest_.size(),
                  rest_.size() == 1 ? "is" : "are");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  template <std::integral T>
  Result<T> number() {
    const std::string_view bytes = TRY(take(sizeof(T)));
    return load_little_endian<T>(as_bytes(bytes).data());
  }

  Result<std::string_view> line() {
    const std::size_t end = rest_.find('\n');
    if (end == rest_.npos)
      return fail(ErrorKind::kCorrupt, "line of {} has no end", info_.name);
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return text;
  }

  template <std::unsigned_integral T>
  Result<> take_unsigned() {
    set_unsigned(TRY(number<T>()));
    return {};
  }

  // A count of type T and that many bytes.
  template <std::integral T>
  Result<> take_blob() {
    const T count = TRY(number<T>());
    if (std::cmp_less(count, 0))
      return fail(ErrorKind::kCorrupt, "{} has a negative count, {}",
                  info_.name, count);
    const std::string_view bytes = TRY(take(static_cast<std::uint64_t>(count)));
    if (info_.code == Opcode::kLong1 || info_.code == Opcode::kLong4)
      set(integer_from_twos_complement(bytes, arena_));
    else
      set_text(kind_of_blob(), bytes);
    return {};
  }

  Kind kind_of_blob() const {
    switch (info_.code) {
      case Opcode::kBinString:
      case Opcode::kShortBinString:
        return Kind::kLegacyString;
      case Opcode::kBinUnicode:
      case Opcode::kShortBinUnicode:
      case Opcode::kBinUnicode8:
        return Kind::kString;
      case Opcode::kByteArray8:
        return Kind::kByteArray;
      default:
        return Kind::kBytes;
    }
  }

  Result<> take_line() {
    const std::string_view text = TRY(line());
    return parse_line(text).in(info_.name);
  }

  Result<> parse_line(std::string_view text) {
    switch (info_.code) {
      case Opcode::kInt:
        set(TRY(integer_from_int_line(text, arena_, limits_)));
        return {};
      case Opcode::kLong:
        set(TRY(integer_from_long_line(text, arena_, limits_)));
        return {};
      case Opcode::kFloat:
        set(TRY(float_from_line(text, arena_)));
        return {};
      case Opcode::kString:
        set(TRY(legacy_string_from_line(text, arena_)));
        return {};
      case Opcode::kUnicode:
        set(TRY(string_from_line(text, arena_)));
        return {};
      case Opcode::kGet:
      case Opcode::kPut:
        set_unsigned(TRY(memo_key_from_line(text)));
        return {};
      default:
        assert(info_.code == Opcode::kPersId);
        set_text(Kind::kString, text);
        return {};
    }
  }

  void set(const Value& value) {
    into_.kind = value.kind();
    if (value.is(Kind::kBoolean))
      into_.number = value.boolean();
    else if (value.is(Kind::kInteger))
      into_.number = value.integer();
    else if (value.is(Kind::kFloat))
      into_.floating = value.floating();
    else
      into_.text = value.text();
  }

  void set_text(Kind kind, std::string_view text) {
    into_.kind = kind;
    into_.text = text;
  }

  void set_integer(std::int64_t number) {
    into_.kind = Kind::kInteger;
    into_.number = number;
  }

  void set_unsigned(std::uint64_t number) {
    if (std::in_range<std::int64_t>(number))
      return set_integer(static_cast<std::int64_t>(number));
    constexpr std::size_t kSize = sizeof(number) + 1;  // plus a zero sign byte
    char* const bytes = arena_.allocate_text(kSize);
    std::memcpy(bytes, &number, sizeof(number));
    bytes[sizeof(number)] = 0;
    set_text(Kind::kBigInteger, {bytes, kSize});
  }

  Instruction& into_;
  const OpcodeInfo& info_;
  std::string_view rest_;
  Arena& arena_;
  const Limits& limits_;
};

}  // namespace

Result<std::optional<Instruction>> Disassembler::next() {
  if (stopped_)
    return std::nullopt;
  if (offset_ == bytes_.size())
    return fail(ErrorKind::kCorrupt, "byte {}: pickle ends without STOP",
                offset_);
  const auto code = static_cast<std::uint8_t>(bytes_[offset_]);
  const OpcodeInfo* const info = opcode_info(code);
  if (info == nullptr)
    return fail(ErrorKind::kCorrupt, "byte {}: {:#04x} is not a pickle opcode",
                offset_, code);

  arena_.reset();
  Instruction instruction;
  instruction.offset = offset_;
  instruction.info = info;
  const Bytes rest = bytes_.subspan(offset_ + 1);
  ArgumentReader reader(instruction, rest, arena_, limits_);
  Result<> read = reader.read();
  if (!read)
    return tl::unexpected<Error>(
        std::move(read).error().in(fmt::format("byte {}", offset_)));

  instruction.raw = rest.first(rest.size() - reader.left());
  instruction.size = 1 + instruction.raw.size();
  offset_ += instruction.size;
  stopped_ = info->code == Opcode::kStop;
  return instruction;
}

std::string argument_text(const Instruction& instruction) {
  switch (instruction.kind) {
    case Kind::kBoolean:
      return instruction.number != 0 ? "True" : "False";
    case Kind::kInteger:
      return std::to_string(instruction.number);
    case Kind::kBigInteger:
      return repr_integer(instruction.text);
    case Kind::kFloat:
      return repr_float(instruction.floating);
    case Kind::kString:
      return repr_string(instruction.text);
    case Kind::kLegacyString:
      return repr_latin1(instruction.text);
    case Kind::kBytes:
      return repr_bytes(instruction.text);
    case Kind::kByteArray:
      return "bytearray(" + repr_bytes(instruction.text) + ')';
    case Kind::kGlobal:
      return repr_string(
          fmt::format("{} {}", instruction.text, instruction.name));
    default:
      return {};
  }
}

}  // namespace postflight
