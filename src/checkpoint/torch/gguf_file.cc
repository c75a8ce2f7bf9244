#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "checkpoint/torch/chat_template.h"
#include "checkpoint/torch/known_formats.h"

namespace postflight {
namespace {

// The bytes of a block of a type of tensor, and the elements in it.
struct TensorType {
  std::uint32_t number;
  std::uint32_t elements;
  std::uint32_t bytes;
};
constexpr std::array kTensorTypes = {
    TensorType{0, 1, 4},      TensorType{1, 1, 2},
    TensorType{2, 32, 18},    TensorType{3, 32, 20},
    TensorType{6, 32, 22},    TensorType{7, 32, 24},
    TensorType{8, 32, 34},    TensorType{9, 32, 36},
    TensorType{10, 256, 84},  TensorType{11, 256, 110},
    TensorType{12, 256, 144}, TensorType{13, 256, 176},
    TensorType{14, 256, 210}, TensorType{15, 256, 292},
    TensorType{16, 256, 66},  TensorType{17, 256, 74},
    TensorType{18, 256, 98},  TensorType{19, 256, 50},
    TensorType{20, 32, 18},   TensorType{21, 256, 110},
    TensorType{22, 256, 82},  TensorType{23, 256, 136},
    TensorType{24, 1, 1},     TensorType{25, 1, 2},
    TensorType{26, 1, 4},     TensorType{27, 1, 8},
    TensorType{28, 1, 8},     TensorType{29, 256, 56},
    TensorType{30, 1, 2},     TensorType{34, 256, 54},
    TensorType{35, 256, 66},  TensorType{39, 32, 17},
};

// Reads the key-value pairs at the front of a GGUF file, and what it says of
// its tensors behind them.
class GgufJudge {
 public:
  explicit GgufJudge(Bytes bytes) : bytes_(bytes), cursor_(bytes) {}

  KnownFormat judge() {
    if (!read())
      add("gguf_damaged",
          "what it says of itself and its tensors at its front is damaged");
    return std::move(format_);
  }

 private:
  static constexpr std::uint32_t kUnsigned32 = 4;
  static constexpr std::uint32_t kText = 8;
  static constexpr std::uint32_t kArray = 9;

  void add(std::string kind, std::string message) {
    constexpr std::size_t kMostDoubts = 100;
    if (format_.doubts.size() < kMostDoubts)
      format_.doubts.push_back(doubt(std::move(kind), std::move(message)));
  }

  Result<> read() {
    TRY(cursor_.skip(4));
    const auto version = TRY(cursor_.little_endian<std::uint32_t>());
    if (version < 2 || version > 3)
      return fail(ErrorKind::kUnsupported, "version {}", version);
    const auto tensors = TRY(cursor_.little_endian<std::uint64_t>());
    const auto pairs = TRY(cursor_.little_endian<std::uint64_t>());
    for (std::uint64_t i = 0; i < pairs; ++i)
      TRY(read_pair());
    std::uint64_t end = 0;
    bool known = true;
    for (std::uint64_t i = 0; i < tensors; ++i) {
      const std::optional<std::uint64_t> one = TRY(read_tensor());
      known = known && one;
      end = std::max(end, one.value_or(0));
    }
    if (!known) {
      add("gguf_tensor_type", "a tensor of it has a type that is not known");
      return {};
    }
    const std::uint64_t begin = padded(cursor_.offset());
    const auto last = checked_add(begin, end);
    if (end > 0 && (!last || *last > bytes_.size()))
      return fail(ErrorKind::kCorrupt, "a tensor beyond the end");
    const std::uint64_t rest =
        tensors == 0 ? cursor_.offset()
                     : padded(checked_add(begin, end).value_or(bytes_.size()));
    if (rest < bytes_.size())
      add("unaccounted_bytes",
          fmt::format("{} bytes follow the last tensor", bytes_.size() - rest));
    return {};
  }

  Result<> read_pair() {
    const std::string_view key = TRY(text());
    const auto type = TRY(cursor_.little_endian<std::uint32_t>());
    if (key == "general.alignment" && type == kUnsigned32) {
      alignment_ = TRY(cursor_.little_endian<std::uint32_t>());
      return {};
    }
    const bool is_template = key.find("chat_template") != key.npos;
    return read_value(type, is_template, 0);
  }

  Result<> read_value(std::uint32_t type, bool is_template, int depth) {
    if (type == kText) {
      const std::string_view value = TRY(text());
      if (is_template)
        judge_template(value);
      return {};
    }
    if (type != kArray)
      return cursor_.skip(TRY(size_of(type)));
    constexpr int kDeepest = 8;
    if (depth == kDeepest)
      return fail(ErrorKind::kUnsupported, "arrays of arrays");
    const auto inner = TRY(cursor_.little_endian<std::uint32_t>());
    const auto count = TRY(cursor_.little_endian<std::uint64_t>());
    if (inner == kText || inner == kArray) {
      for (std::uint64_t i = 0; i < count; ++i)
        TRY(read_value(inner, is_template, depth + 1));
      return {};
    }
    const auto bytes = checked_multiply(count, TRY(size_of(inner)));
    if (!bytes)
      return fail(ErrorKind::kCorrupt, "too long an array");
    return cursor_.skip(*bytes);
  }

  // Where it ends, behind the begin of all; empty if its type is not known.
  Result<std::optional<std::uint64_t>> read_tensor() {
    TRY(text());
    const auto dimensions = TRY(cursor_.little_endian<std::uint32_t>());
    std::optional<std::uint64_t> count = 1;
    for (std::uint32_t i = 0; i < dimensions; ++i) {
      const auto size = TRY(cursor_.little_endian<std::uint64_t>());
      count = count ? checked_multiply(*count, size) : std::nullopt;
    }
    const auto number = TRY(cursor_.little_endian<std::uint32_t>());
    const auto offset = TRY(cursor_.little_endian<std::uint64_t>());
    const auto* const type =
        std::ranges::find(kTensorTypes, number, &TensorType::number);
    if (type == kTensorTypes.end())
      return std::optional<std::uint64_t>();
    const auto size = count ? checked_multiply(*count / type->elements,
                                               std::uint64_t{type->bytes})
                            : std::nullopt;
    const auto end = size ? checked_add(offset, *size) : std::nullopt;
    if (!end || *end > bytes_.size())
      return fail(ErrorKind::kCorrupt, "a tensor beyond the end");
    return end;
  }

  void judge_template(std::string_view value) {
    if (const auto reach = reach_of_template(value))
      format_.doubts.push_back(template_reaches(*reach));
  }

  std::uint64_t padded(std::uint64_t size) const {
    const std::uint64_t unit = std::max<std::uint64_t>(alignment_, 1);
    return (size + unit - 1) / unit * unit;
  }

  Result<std::string_view> text() {
    const auto size = TRY(cursor_.little_endian<std::uint64_t>());
    return as_text(TRY(cursor_.take(size)));
  }

  static Result<std::uint64_t> size_of(std::uint32_t type) {
    constexpr std::array<std::uint64_t, 13> kSizes = {1, 1, 2, 2, 4, 4, 4,
                                                      1, 0, 0, 8, 8, 8};
    if (type >= kSizes.size() || kSizes[type] == 0)
      return fail(ErrorKind::kCorrupt, "type {}", type);
    return kSizes[type];
  }

  Bytes bytes_;
  Cursor cursor_;
  KnownFormat format_{"a GGUF file, which holds no pickles", {}};
  std::uint32_t alignment_ = 32;
};

}  // namespace

KnownFormat gguf_file(Bytes bytes) {
  return GgufJudge(bytes).judge();
}

}  // namespace postflight
