#include "report/array_text.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "checkpoint/tensor_slice.h"
#include "checkpoint/tensor_statistics.h"

namespace postflight {
namespace {

// A float as numpy writes it with eight digits after the point at most: the
// shortest digits that tell it from its neighbours of the same precision.
std::string float_digits(double value, bool single, bool scientific) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  constexpr int kDigits = 8;
  if (scientific) {
    std::string text = single ? fmt::format("{:e}", static_cast<float>(value))
                              : fmt::format("{:e}", value);
    std::string shortest = single ? fmt::format("{}", static_cast<float>(value))
                                  : fmt::format("{}", value);
    // The number of digits that the shortest form has.
    std::size_t digits = 0;
    bool leading = true;
    for (const char c : shortest) {
      if (c == 'e')
        break;
      if (c >= '0' && c <= '9' && (!leading || c != '0')) {
        leading = false;
        ++digits;
      }
    }
    const int after = static_cast<int>(
        std::min<std::size_t>(kDigits, digits > 0 ? digits - 1 : 0));
    return fmt::format("{:.{}e}", value, after);
  }
  std::string text = single ? fmt::format("{}", static_cast<float>(value))
                            : fmt::format("{}", value);
  const std::size_t point = text.find('.');
  if (text.find('e') != text.npos ||
      (point != text.npos && text.size() - point - 1 > kDigits))
    text = fmt::format("{:.{}f}", value, kDigits);
  if (text.find('.') == text.npos)
    return text + ".";
  while (text.back() == '0')
    text.pop_back();
  return text;
}

std::string complex_digits(const Dtype& dtype, const std::byte* at) {
  const Dtype part{.name = "",
                   .size = dtype.size / 2,
                   .swap = 1,
                   .numeric = Numeric::kFloat};
  const double re = element_value(part, at).value_or(0);
  const double im = element_value(part, at + part.size).value_or(0);
  const bool single = part.size <= 4;
  std::string imaginary = float_digits(im, single, false);
  if (!imaginary.starts_with('-'))
    imaginary.insert(0, "+");
  return float_digits(re, single, false) + imaginary + "j";
}

std::string opaque_digits(Bytes element) {
  std::string text = "0x";
  for (auto it = element.rbegin(); it != element.rend(); ++it)
    text += fmt::format("{:02x}", std::to_integer<unsigned>(*it));
  return text;
}

class ArrayWriter {
 public:
  ArrayWriter(const TensorReader& reader, const Tensor& tensor,
              const ArrayTextOptions& options)
      : reader_(reader), tensor_(tensor), options_(options) {}

  Result<std::string> run() {
    cut_ = tensor_.elements() > options_.whole;
    index_.resize(tensor_.shape.size());
    TRY(collect(0));
    format();
    std::size_t next = 0;
    write(0, next);
    return std::move(text_);
  }

 private:
  bool cut_at(std::size_t dimension) const {
    return cut_ && static_cast<std::uint64_t>(tensor_.shape[dimension]) >
                       2 * options_.edge;
  }

  // Recursion is as deep as the tensor has dimensions, and a tensor with
  // elements has few of more than one: kMostDimensions ends it.
  Result<> collect(std::size_t dimension) {
    constexpr std::size_t kMostDimensions = 64;
    if (dimension > kMostDimensions)
      return fail(ErrorKind::kUnsupported,
                  "a tensor of more than {} dimensions is not shown",
                  kMostDimensions);
    if (tensor_.shape.empty())
      return read({});
    const auto size = static_cast<std::uint64_t>(tensor_.shape[dimension]);
    const bool last = dimension + 1 == tensor_.shape.size();
    const bool cut = cut_at(dimension);
    if (last) {
      TRY(read({{0, cut ? options_.edge : size, 1, false}}));
      if (cut)
        TRY(read({{size - options_.edge, options_.edge, 1, false}}));
      return {};
    }
    for (std::uint64_t i = 0; i < size; ++i) {
      if (cut && i == options_.edge)
        i = size - options_.edge;
      index_[dimension] = i;
      TRY(collect(dimension + 1));
    }
    return {};
  }

  Result<> read(std::vector<SliceRange> last) {
    std::vector<SliceRange> ranges;
    for (std::size_t i = 0; i + 1 < tensor_.shape.size(); ++i)
      ranges.push_back({index_[i], 1, 1, true});
    ranges.insert(ranges.end(), last.begin(), last.end());
    const TensorSlice row = slice_tensor(tensor_, ranges);
    const std::size_t begin = bytes_.size();
    bytes_.resize(begin + row.tensor.bytes());
    return reader_.read(row.tensor, std::span(bytes_).subspan(begin));
  }

  void format() {
    const Dtype& dtype = tensor_.dtype;
    const std::size_t size = dtype.size;
    const bool floating = dtype.numeric == Numeric::kFloat ||
                          dtype.numeric == Numeric::kBfloat16 ||
                          dtype.numeric == Numeric::kFloat8;
    double largest = 0;
    double smallest = 0;
    for (std::size_t at = 0; at < bytes_.size(); at += size) {
      const double value =
          std::fabs(element_value(dtype, &bytes_[at]).value_or(0));
      if (!std::isfinite(value) || value == 0)
        continue;
      largest = std::max(largest, value);
      smallest = smallest == 0 ? value : std::min(smallest, value);
    }
    const bool scientific =
        floating && largest > 0 &&
        (largest >= 1e8 || smallest < 1e-4 || largest / smallest > 1000);
    for (std::size_t at = 0; at < bytes_.size(); at += size)
      shown_.push_back(digits(&bytes_[at], scientific));
    if (!floating || scientific) {
      pad_left();
      return;
    }
    // Points stand below each other.
    std::size_t left = 0;
    std::size_t right = 0;
    for (const std::string& one : shown_) {
      const std::size_t point = std::min(one.find('.'), one.size());
      left = std::max(left, point);
      right = std::max(right, one.size() - point);
    }
    for (std::string& one : shown_) {
      const std::size_t point = std::min(one.find('.'), one.size());
      if (point == one.size()) {  // nan, inf
        one.insert(0, left + right > one.size() ? left + right - one.size() : 0,
                   ' ');
        continue;
      }
      one.append(right - (one.size() - point), ' ');
      one.insert(0, left - point, ' ');
    }
  }

  void pad_left() {
    std::size_t width = 0;
    for (const std::string& one : shown_)
      width = std::max(width, one.size());
    for (std::string& one : shown_)
      one.insert(0, width - one.size(), ' ');
  }

  std::string digits(const std::byte* at, bool scientific) const {
    const Dtype& dtype = tensor_.dtype;
    switch (dtype.numeric) {
      case Numeric::kBoolean:
        return *at != std::byte{0} ? "True" : "False";
      case Numeric::kSigned:
        if (dtype.size == 8)
          return fmt::format("{}", load_little_endian<std::int64_t>(at));
        return fmt::format("{}", *element_value(dtype, at));
      case Numeric::kUnsigned:
        if (dtype.size == 8)
          return fmt::format("{}", load_little_endian<std::uint64_t>(at));
        return fmt::format("{}", *element_value(dtype, at));
      case Numeric::kComplex:
        return complex_digits(dtype, at);
      case Numeric::kOpaque:
        return opaque_digits({at, dtype.size});
      default:
        return float_digits(*element_value(dtype, at), dtype.size <= 4,
                            scientific);
    }
  }

  void write(std::size_t dimension, std::size_t& next) {
    if (tensor_.shape.empty()) {
      text_ += shown_.empty() ? "" : shown_[0];
      return;
    }
    const auto size = static_cast<std::uint64_t>(tensor_.shape[dimension]);
    const bool last = dimension + 1 == tensor_.shape.size();
    const bool cut = cut_at(dimension);
    text_ += "[";
    std::size_t column = dimension + 1;
    for (std::uint64_t i = 0; i < size; ++i) {
      if (i > 0 && !last) {
        text_.append(tensor_.shape.size() - dimension - 1, '\n');
        text_.append(dimension + 1, ' ');
      }
      if (cut && i == options_.edge) {
        text_ += last ? " ..." : "...";
        column += 4;
        i = size - options_.edge;
        if (!last) {
          text_.append(tensor_.shape.size() - dimension - 1, '\n');
          text_.append(dimension + 1, ' ');
        }
      }
      if (!last) {
        write(dimension + 1, next);
        continue;
      }
      const std::string& one = shown_[next++];
      if (i > 0 && column + 1 + one.size() > options_.width) {
        text_ += "\n" + std::string(dimension + 1, ' ');
        column = dimension + 1;
      } else if (i > 0) {
        text_ += " ";
        ++column;
      }
      text_ += one;
      column += one.size();
    }
    text_ += "]";
  }

  const TensorReader& reader_;
  const Tensor& tensor_;
  const ArrayTextOptions& options_;
  bool cut_ = false;
  std::vector<std::uint64_t> index_;
  std::vector<std::byte> bytes_;
  std::vector<std::string> shown_;
  std::string text_;
};

}  // namespace

Result<std::string> array_text(const TensorReader& reader, const Tensor& tensor,
                               const ArrayTextOptions& options) {
  if (tensor.elements() == 0)
    return std::string("[]");
  if (tensor.dtype.per_byte > 1)
    return std::string("(packed elements)");
  return ArrayWriter(reader, tensor, options).run();
}

}  // namespace postflight
