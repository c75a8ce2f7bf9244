#include "pickle/assembler.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "pickle/opcode.h"

namespace postflight {
namespace {

class Assembler {
 public:
  explicit Assembler(std::string_view text) : text_(text), rest_(text) {}

  std::string assemble() {
    while (!(token_ = next_token()).empty()) {
      if (token_ == "HEX")
        hex();
      else if (token_ == "RAW")
        out_ += quoted();
      else
        instruction();
    }
    return std::move(out_);
  }

 private:
  static constexpr std::string_view kSpace = " \t\n";

  [[noreturn]] void die(std::string_view why) const {
    fmt::print(stderr, "bad pickle text at \"{}\": {}\n  in: {}\n", token_, why,
               text_);
    std::abort();
  }

  void skip_space() {
    rest_.remove_prefix(
        std::min(rest_.find_first_not_of(kSpace), rest_.size()));
  }

  std::string_view next_token() {
    skip_space();
    const std::string_view token = rest_.substr(0, rest_.find_first_of(kSpace));
    rest_.remove_prefix(token.size());
    return token;
  }

  bool at_quote() {
    skip_space();
    return rest_.starts_with('\'');
  }

  template <class T>
  T parse(std::string_view digits, int base = 10) const {
    T value{};
    const char* const end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), end, value, base);
    if (parsed.ec != std::errc() || parsed.ptr != end)
      die(fmt::format("\"{}\" is no number that fits here", digits));
    return value;
  }

  template <std::integral T>
  void put(T value) {
    char bytes[sizeof(T)];
    __builtin_memcpy(bytes, &value, sizeof(T));
    out_.append(bytes, sizeof(T));
  }

  char escaped() {
    if (rest_.empty())
      die("the text ends inside an escape");
    const char c = rest_[0];
    rest_.remove_prefix(1);
    if (c == '\\' || c == '\'')
      return c;
    if (c == 'n')
      return '\n';
    if (c != 'x' || rest_.size() < 2)
      die(fmt::format("\\{} is no escape here", c));
    const char byte =
        static_cast<char>(parse<std::uint8_t>(rest_.substr(0, 2), 16));
    rest_.remove_prefix(2);
    return byte;
  }

  std::string quoted() {
    if (!at_quote())
      die("a quoted text should follow");
    rest_.remove_prefix(1);
    std::string out;
    while (!rest_.empty()) {
      const char c = rest_[0];
      rest_.remove_prefix(1);
      if (c == '\'')
        return out;
      out += c == '\\' ? escaped() : c;
    }
    die("its quoted text has no end");
  }

  void hex() {
    const auto is_byte = [this] {
      skip_space();
      const std::string_view token =
          rest_.substr(0, rest_.find_first_of(kSpace));
      return token.size() == 2 &&
             token.find_first_not_of("0123456789abcdef") == token.npos;
    };
    if (!is_byte())
      die("two lower-case hex digits should follow");
    while (is_byte())
      put(parse<std::uint8_t>(next_token(), 16));
  }

  void line() {
    out_ += quoted();
    out_ += '\n';
  }

  // The shortest two's complement of a number, as LONG1 has it.
  static std::string long_bytes(std::int64_t value) {
    std::string out;
    while (value != 0 && value != -1) {
      out += static_cast<char>(value & 0xff);
      value >>= 8;
    }
    const bool sign = !out.empty() && (out.back() & 0x80) != 0;
    if (sign != (value < 0))
      out += static_cast<char>(value);
    return out;
  }

  template <std::integral T>
  void blob(const OpcodeInfo& info, std::string_view count) {
    const bool is_long =
        info.code == Opcode::kLong1 || info.code == Opcode::kLong4;
    const std::string bytes =
        is_long && !at_quote() ? long_bytes(number<std::int64_t>()) : quoted();
    if (count.empty() && !std::in_range<T>(bytes.size()))
      die("the text is longer than its count can say");
    put(count.empty() ? static_cast<T>(bytes.size()) : parse<T>(count));
    out_ += bytes;
  }

  template <class T>
  T number() {
    const std::string_view token = next_token();
    if (token.empty())
      die("a number should follow");
    return parse<T>(token);
  }

  // The decimal forms of a double, and inf and nan.
  double decimal() {
    const std::string token(next_token());
    char* end = nullptr;
    const double value = std::strtod(token.c_str(), &end);
    if (token.empty() || *end != '\0')
      die(fmt::format("\"{}\" is no decimal number", token));
    return value;
  }

  void instruction() {
    const std::size_t hash = token_.find('#');
    const std::string_view name = token_.substr(0, hash);
    const std::string_view count =
        hash == token_.npos ? std::string_view() : token_.substr(hash + 1);
    const OpcodeInfo* const info = opcode_info(name);
    if (info == nullptr)
      die("there is no such opcode");
    if (hash != token_.npos && info->argument < Argument::kBlob1)
      die("this opcode has no count");
    out_ += static_cast<char>(info->code);
    argument(*info, count);
  }

  void argument(const OpcodeInfo& info, std::string_view count) {
    switch (info.argument) {
      case Argument::kNone:
        return;
      case Argument::kUnsigned1:
        return put(number<std::uint8_t>());
      case Argument::kUnsigned2:
        return put(number<std::uint16_t>());
      case Argument::kUnsigned4:
        return put(number<std::uint32_t>());
      case Argument::kSigned4:
        return put(number<std::int32_t>());
      case Argument::kUnsigned8:
        return put(number<std::uint64_t>());
      case Argument::kFloat8:
        return put(__builtin_bswap64(std::bit_cast<std::uint64_t>(decimal())));
      case Argument::kLine:
        return line();
      case Argument::kTwoLines:
        line();
        return line();
      case Argument::kBlob1:
        return blob<std::uint8_t>(info, count);
      case Argument::kBlob4:
        return blob<std::uint32_t>(info, count);
      case Argument::kSignedBlob4:
        return blob<std::int32_t>(info, count);
      case Argument::kBlob8:
        return blob<std::uint64_t>(info, count);
    }
  }

  std::string_view text_;
  std::string_view rest_;
  std::string_view token_;  // the opcode being assembled
  std::string out_;
};

}  // namespace

std::string pickle(std::string_view text) {
  return Assembler(text).assemble();
}

}  // namespace postflight
