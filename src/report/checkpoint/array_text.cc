#include "report/checkpoint/array_text.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "checkpoint/tensor/slice.h"
#include "checkpoint/tensor/statistics.h"
#include "report/checkpoint/float_column.h"

namespace postflight {
namespace {

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
    // Many short dimensions are not shortened, so show fewer of the long ones.
    while (edge_ > 1 && most_words() > kMostWords)
      --edge_;
    if (most_words() > kMostWords)
      return fmt::format("({} elements in {} dimensions; show a slice of them)",
                         tensor_.elements(), tensor_.shape.size());
    index_.resize(tensor_.shape.size());
    TRY(collect(0));
    format();
    std::size_t next = 0;
    write(0, next);
    return std::move(text_);
  }

 private:
  static constexpr std::uint64_t kMostWords = 50'000;

  bool cut_at(std::size_t dimension) const {
    return cut_ &&
           static_cast<std::uint64_t>(tensor_.shape[dimension]) > 2 * edge_;
  }

  // How many elements will be shown, or some number beyond kMostWords.
  std::uint64_t most_words() const {
    std::uint64_t words = 1;
    for (std::size_t i = 0; i < tensor_.shape.size() && words <= kMostWords;
         ++i)
      words *=
          cut_at(i) ? 2 * edge_ : static_cast<std::uint64_t>(tensor_.shape[i]);
    return words;
  }

  // Recurses once per dimension, up to kMostDimensions.
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
      TRY(read({{0, cut ? edge_ : size, 1, false}}));
      if (cut)
        TRY(read({{size - edge_, edge_, 1, false}}));
      return {};
    }
    for (std::uint64_t i = 0; i < size; ++i) {
      if (cut && i == edge_)
        i = size - edge_;
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
    switch (dtype.numeric) {
      case Numeric::kFloat:
      case Numeric::kBfloat16:
        return format_floats();
      case Numeric::kComplex:
        return format_complex();
      default:
        if (is_float8(dtype.numeric))
          return format_floats();
    }
    for (std::size_t at = 0; at < bytes_.size(); at += dtype.size)
      words_.push_back(digits(&bytes_[at]));
    std::size_t width = 0;
    for (const std::string& word : words_)
      width = std::max(width, word.size());
    if (dtype.numeric == Numeric::kBoolean && !tensor_.shape.empty())
      width = std::string_view("False").size();
    for (std::string& word : words_)
      word.insert(0, width - word.size(), ' ');
  }

  void format_floats() {
    const FloatPrecision precision = FloatPrecision::of(tensor_.dtype);
    std::vector<double> values;
    for (std::size_t at = 0; at < bytes_.size(); at += tensor_.dtype.size)
      values.push_back(*element_value(tensor_.dtype, &bytes_[at]));
    if (tensor_.shape.empty()) {
      words_.push_back(float_text(values[0], precision));
      return;
    }
    const FloatColumn column(values, precision);
    for (const double value : values)
      words_.push_back(column.text(value));
  }

  void format_complex() {
    const FloatPrecision precision = FloatPrecision::of(tensor_.dtype);
    const Dtype part{.name = "",
                     .size = tensor_.dtype.size / 2,
                     .swap = 1,
                     .numeric = Numeric::kFloat};
    std::vector<double> reals;
    std::vector<double> imaginaries;
    for (std::size_t at = 0; at < bytes_.size(); at += tensor_.dtype.size) {
      reals.push_back(*element_value(part, &bytes_[at]));
      imaginaries.push_back(*element_value(part, &bytes_[at + part.size]));
    }
    if (tensor_.shape.empty()) {
      words_.push_back(complex_text(reals[0], imaginaries[0], precision));
      return;
    }
    const FloatColumn first(reals, precision);
    const FloatColumn second(imaginaries, precision,
                             FloatColumn::Sign::kAlways);
    for (std::size_t i = 0; i < reals.size(); ++i) {
      std::string imaginary = second.text(imaginaries[i]);
      imaginary.insert(imaginary.find_last_not_of(' ') + 1, "j");
      words_.push_back(first.text(reals[i]) + imaginary);
    }
  }

  std::string digits(const std::byte* at) const {
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
      default:
        return opaque_digits({at, dtype.size});
    }
  }

  void write(std::size_t dimension, std::size_t& next) {
    if (tensor_.shape.empty()) {
      text_ += words_[0];
      return;
    }
    text_ += "[";
    if (dimension + 1 == tensor_.shape.size()) {
      write_row(next);
    } else {
      const auto size = static_cast<std::uint64_t>(tensor_.shape[dimension]);
      const std::string between =
          std::string(tensor_.shape.size() - dimension - 1, '\n') +
          std::string(dimension + 1, ' ');
      for (std::uint64_t i = 0; i < size; ++i) {
        if (i > 0)
          text_ += between;
        if (cut_at(dimension) && i == edge_) {
          text_ += "..." + between;
          i = size - edge_;
        }
        write(dimension + 1, next);
      }
    }
    text_ += "]";
  }

  // The innermost dimension, in lines with room for the brackets.
  void write_row(std::size_t& next) {
    const std::size_t dimensions = tensor_.shape.size();
    const std::size_t width =
        options_.width - std::min(options_.width, dimensions);
    const auto size = static_cast<std::uint64_t>(tensor_.shape.back());
    std::string line(dimensions, ' ');
    const std::size_t begin = text_.size();
    const auto add = [&](std::string_view word) {
      if (line.size() + word.size() > width && line.size() > dimensions) {
        line.erase(line.find_last_not_of(' ') + 1);
        text_ += line + "\n";
        line.assign(dimensions, ' ');
      }
      line += word;
    };
    for (std::uint64_t i = 0; i < size; ++i) {
      if (i > 0)
        line += ' ';
      if (cut_at(dimensions - 1) && i == edge_) {
        add("...");
        line += ' ';
        i = size - edge_;
      }
      add(words_[next++]);
    }
    text_ += line;
    text_.erase(begin, dimensions);  // where the brackets are
  }

  const TensorReader& reader_;
  const Tensor& tensor_;
  const ArrayTextOptions& options_;
  std::uint64_t edge_ = options_.edge;
  bool cut_ = false;
  std::vector<std::uint64_t> index_;
  std::vector<std::byte> bytes_;
  std::vector<std::string> words_;
  std::string text_;
};

}  // namespace

Result<std::string> array_text(const TensorReader& reader, const Tensor& tensor,
                               const ArrayTextOptions& options) {
  if (tensor.elements() == 0)
    return std::string("[]");
  if (tensor.dtype.packed > 1)
    return std::string("(packed elements)");
  return ArrayWriter(reader, tensor, options).run();
}

}  // namespace postflight
