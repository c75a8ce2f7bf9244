// Readers agree on nearly everything that picklers write, and differ where none
// has been. Frames: in memory they are ignored; from a file, CPython's C reader
// before 3.13.15 and 3.14.7 drops what is left of a frame when an argument
// reaches beyond it, and goes on behind it; the reader in Python refuses. Text
// forms of numbers: C's strtol and Python's int() accept different lines. The
// memo: Python 2 knows its entries by their text, and C makes an array up to
// the highest. Extension codes, out-of-band buffers and persistent ids come
// from the reading program.

#include "pickle/audit/scrutiny.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/utf8.h"
#include "pickle/opcode.h"

namespace postflight {
namespace {

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// As every writer spells integers and every reader reads them.
bool is_plain_integer(std::string_view line) {
  if (line.starts_with('-'))
    line.remove_prefix(1);
  return !line.empty() && std::ranges::all_of(line, is_digit) &&
         (line.size() == 1 || line[0] != '0');
}

bool is_plain_float(std::string_view line) {
  if (line.starts_with('-'))
    line.remove_prefix(1);
  if (line == "inf" || line == "nan")
    return true;
  const std::string_view digits = line.substr(0, line.find_first_of("eE"));
  std::string_view exponent = line.substr(digits.size());
  if (!exponent.empty()) {
    exponent.remove_prefix(1);
    if (exponent.starts_with('+') || exponent.starts_with('-'))
      exponent.remove_prefix(1);
    if (exponent.empty() || !std::ranges::all_of(exponent, is_digit))
      return false;
  }
  return std::ranges::count(digits, '.') <= 1 &&
         std::ranges::any_of(digits, is_digit) &&
         std::ranges::all_of(digits,
                             [](char c) { return is_digit(c) || c == '.'; });
}

// UTF-8 with lone surrogates, as Python's surrogatepass.
bool is_python_text(std::string_view text) {
  while (!text.empty()) {
    const Utf8Character character = decode_utf8(text);
    if (character.kind == Utf8Kind::kInvalid)
      return false;
    text.remove_prefix(character.size);
  }
  return true;
}

class OpcodeWalk {
 public:
  explicit OpcodeWalk(Bytes pickle) : text_(as_text(pickle)) {}

  Scrutiny run() {
    while (next_ < text_.size() && step()) {
    }
    if (frame_end_ > next_ && stopped_)
      doubt("frame_too_long",
            "a frame reaches beyond the end of the pickle, which readers from "
            "a file skip and others do not",
            frame_at_);
    return std::move(result_);
  }

 private:
  void doubt(std::string_view kind, std::string_view message,
             std::size_t offset) {
    for (const Reason& known : result_.doubts)
      if (known.kind == kind)
        return;
    result_.doubts.push_back({Safety::kUnknown, std::string(kind),
                              std::string(message),
                              fmt::format("byte {}", offset)});
  }

  std::size_t left() const { return text_.size() - next_; }

  std::uint64_t number(std::size_t width) {
    std::uint64_t value = 0;
    if (left() < width) {
      next_ = text_.size();
      return 0;
    }
    std::memcpy(&value, text_.data() + next_, width);
    next_ += width;
    return value;
  }

  std::string_view blob(std::uint64_t size) {
    const std::string_view taken =
        text_.substr(next_, std::min<std::uint64_t>(size, left()));
    next_ += taken.size();
    return taken;
  }

  std::string_view line() {
    const std::size_t end = text_.find('\n', next_);
    const std::string_view taken =
        text_.substr(next_, end == text_.npos ? text_.npos : end - next_);
    next_ = end == text_.npos ? text_.size() : end + 1;
    return taken;
  }

  // One opcode; false if it is none.
  bool step() {
    const std::size_t at = next_;
    const OpcodeInfo* const info =
        opcode_info(static_cast<std::uint8_t>(text_[next_++]));
    if (info == nullptr)
      return false;
    const std::uint64_t frame_end = frame_end_;
    switch (info->argument) {
      case Argument::kNone:
        check_bare(info->code, at);
        break;
      case Argument::kUnsigned1:
        check_number(info->code, number(1), at);
        break;
      case Argument::kUnsigned2:
        check_number(info->code, number(2), at);
        break;
      case Argument::kUnsigned4:
      case Argument::kSigned4:
        check_number(info->code, number(4), at);
        break;
      case Argument::kUnsigned8:
      case Argument::kFloat8:
        check_number(info->code, number(8), at);
        break;
      case Argument::kLine:
        check_line(info->code, line(), at);
        break;
      case Argument::kTwoLines: {
        const std::string_view module = line();
        check_name(module, at);
        check_name(line(), at);
        break;
      }
      case Argument::kBlob1:
        check_blob(info->code, blob(number(1)), at);
        break;
      case Argument::kBlob4:
      case Argument::kSignedBlob4:
        check_blob(info->code, blob(number(4)), at);
        break;
      case Argument::kBlob8:
        check_blob(info->code, blob(number(8)), at);
        break;
    }
    if (at < frame_end && next_ > frame_end)
      doubt("frame_ends_inside",
            "a frame ends inside an opcode: some readers go on behind the "
            "frame, others refuse",
            at);
    stopped_ = info->code == Opcode::kStop;
    return !stopped_;
  }

  void check_bare(Opcode code, std::size_t at) {
    if (code == Opcode::kBinPersId)
      result_.has_persistent_ids = true;
    if (code == Opcode::kNextBuffer || code == Opcode::kReadOnlyBuffer)
      doubt("buffer",
            "its out-of-band buffers come from the reading program and are not "
            "in this file",
            at);
  }

  void check_number(Opcode code, std::uint64_t value, std::size_t at) {
    switch (code) {
      case Opcode::kProto:
        if (at != 0)
          doubt("proto_inside",
                "PROTO is not at the front: from there on names mean "
                "something else to some readers",
                at);
        break;
      case Opcode::kFrame:
        begin_frame(value, at);
        break;
      case Opcode::kExt1:
      case Opcode::kExt2:
      case Opcode::kExt4:
        doubt("extension",
              fmt::format("extension code {} stands for what the reading "
                          "program registered under it",
                          value),
              at);
        break;
      case Opcode::kLongBinPut:
        check_key(value, at);
        break;
      default:
        break;
    }
  }

  void begin_frame(std::uint64_t size, std::size_t at) {
    if (next_ < frame_end_)
      doubt("frame_inside_frame",
            "a frame begins inside another: some readers refuse that", at);
    frame_at_ = at;
    frame_end_ =
        next_ + std::min<std::uint64_t>(size, left() + std::uint64_t{1});
  }

  void check_key(std::uint64_t key, std::size_t at) {
    constexpr std::uint64_t kAlways = 1024;
    if (key > text_.size() + kAlways)
      doubt("memo_key",
            fmt::format("memo entry {} is far beyond all others: some readers "
                        "run out of memory, others go on",
                        key),
            at);
  }

  void check_line(Opcode code, std::string_view line, std::size_t at) {
    bool plain = true;
    switch (code) {
      case Opcode::kInt:
        plain = is_plain_integer(line) || line == "00" || line == "01";
        break;
      case Opcode::kLong:
        plain = is_plain_integer(
            line.ends_with('L') ? line.substr(0, line.size() - 1) : line);
        break;
      case Opcode::kFloat:
        plain = is_plain_float(line);
        break;
      case Opcode::kGet:
      case Opcode::kPut:
        plain = is_plain_integer(line) && !line.starts_with('-');
        if (plain && line.size() < 20) {
          std::uint64_t key = 0;
          for (const char c : line)
            key = key * 10 + static_cast<std::uint64_t>(c - '0');
          check_key(key, at);
        }
        break;
      case Opcode::kPersId:
        result_.has_persistent_ids = true;
        if (!is_ascii(line))
          doubt("persistent_id_text",
                "a persistent id is not ASCII: some readers refuse it", at);
        break;
      default:
        break;
    }
    if (!plain)
      doubt("number_text",
            fmt::format("{} has a spelling that readers take differently",
                        name_of(code)),
            at);
  }

  void check_name(std::string_view name, std::size_t at) {
    if (!is_ascii(name))
      doubt("name_text",
            "a name is not ASCII: scanners that use pickletools stop there, "
            "Python does not",
            at);
  }

  void check_blob(Opcode code, std::string_view text, std::size_t at) {
    const bool is_text = code == Opcode::kBinUnicode ||
                         code == Opcode::kShortBinUnicode ||
                         code == Opcode::kBinUnicode8;
    if (is_text && !is_ascii(text) && !is_python_text(text))
      doubt("text_not_utf8", "a text is not UTF-8: readers refuse it", at);
  }

  std::string_view text_;
  std::size_t next_ = 0;
  bool stopped_ = false;
  std::size_t frame_at_ = 0;
  std::uint64_t frame_end_ = 0;
  Scrutiny result_;
};

}  // namespace

Scrutiny scrutinize(Bytes pickle) {
  return OpcodeWalk(pickle).run();
}

}  // namespace postflight
