// GGUF, the files of llama.cpp: key-value pairs, the descriptions of the
// tensors, padding, and their bytes. Dimensions are written with the fastest
// first, so a shape is reversed here. Quantised tensors are blocks of a few
// dozen elements: they are listed with their dtype and shape, and their bytes
// can be read and digested as they are, but not their numbers.

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_set>

#include "checkpoint/gguf/gguf.h"

namespace postflight {
namespace {

constexpr std::string_view kGgufMagic = "GGUF";
constexpr std::uint64_t kGgufAlignment = 32;
constexpr std::uint64_t kMostDimensions = 4;  // of ggml

struct GgmlType {
  std::uint32_t number;
  Dtype dtype;
};

constexpr Dtype blocks(std::string_view name, std::uint32_t elements,
                       std::uint32_t bytes) {
  return {name, bytes, 1, Numeric::kOpaque, elements};
}

constexpr std::array kTypes = {
    GgmlType{0, {"float32", 4, 4, Numeric::kFloat}},
    GgmlType{1, {"float16", 2, 2, Numeric::kFloat}},
    GgmlType{2, blocks("Q4_0", 32, 18)},
    GgmlType{3, blocks("Q4_1", 32, 20)},
    GgmlType{6, blocks("Q5_0", 32, 22)},
    GgmlType{7, blocks("Q5_1", 32, 24)},
    GgmlType{8, blocks("Q8_0", 32, 34)},
    GgmlType{9, blocks("Q8_1", 32, 36)},
    GgmlType{10, blocks("Q2_K", 256, 84)},
    GgmlType{11, blocks("Q3_K", 256, 110)},
    GgmlType{12, blocks("Q4_K", 256, 144)},
    GgmlType{13, blocks("Q5_K", 256, 176)},
    GgmlType{14, blocks("Q6_K", 256, 210)},
    GgmlType{15, blocks("Q8_K", 256, 292)},
    GgmlType{16, blocks("IQ2_XXS", 256, 66)},
    GgmlType{17, blocks("IQ2_XS", 256, 74)},
    GgmlType{18, blocks("IQ3_XXS", 256, 98)},
    GgmlType{19, blocks("IQ1_S", 256, 50)},
    GgmlType{20, blocks("IQ4_NL", 32, 18)},
    GgmlType{21, blocks("IQ3_S", 256, 110)},
    GgmlType{22, blocks("IQ2_S", 256, 82)},
    GgmlType{23, blocks("IQ4_XS", 256, 136)},
    GgmlType{24, {"int8", 1, 1, Numeric::kSigned}},
    GgmlType{25, {"int16", 2, 2, Numeric::kSigned}},
    GgmlType{26, {"int32", 4, 4, Numeric::kSigned}},
    GgmlType{27, {"int64", 8, 8, Numeric::kSigned}},
    GgmlType{28, {"float64", 8, 8, Numeric::kFloat}},
    GgmlType{29, blocks("IQ1_M", 256, 56)},
    GgmlType{30, {"bfloat16", 2, 2, Numeric::kBfloat16}},
    GgmlType{34, blocks("TQ1_0", 256, 54)},
    GgmlType{35, blocks("TQ2_0", 256, 66)},
    GgmlType{39, blocks("MXFP4", 32, 17)},
};

enum ValueType : std::uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

// The size of a value that is not a text or an array; 0 if there is none.
std::uint64_t value_bytes(std::uint32_t type) {
  constexpr std::array<std::uint8_t, 13> kSizes = {1, 1, 2, 2, 4, 4, 4,
                                                   1, 0, 0, 8, 8, 8};
  return type < kSizes.size() ? kSizes[type] : 0;
}

class GgufFile {
 public:
  GgufFile(std::uint32_t file, const SourceContext& context)
      : context_(context),
        checkpoint_(context.checkpoint),
        tree_(context.checkpoint.tree),
        data_(*context.checkpoint.files[file]),
        file_(file),
        cursor_(data_.bytes()) {}

  Result<> add() {
    TRY(cursor_.take(kGgufMagic.size()));
    version_ = TRY(cursor_.little_endian<std::uint32_t>());
    constexpr std::uint32_t kNewest = 3;
    constexpr std::uint32_t kLowHalf = 0xffff;
    if ((version_ & kLowHalf) == 0)
      return fail(ErrorKind::kUnsupported,
                  "it is a big-endian GGUF file, which is not supported; "
                  "convert it with gguf_convert_endian.py of llama.cpp");
    if (version_ > kNewest)
      return fail(ErrorKind::kUnsupported,
                  "it is version {} of GGUF; versions 1 to {} are known",
                  version_, kNewest);
    const std::uint64_t tensors = TRY(count());
    const std::uint64_t pairs = TRY(count());
    // Each takes more bytes than this, whatever its contents.
    if (tensors > cursor_.remaining() / 8 || pairs > cursor_.remaining() / 8)
      return fail(ErrorKind::kCorrupt,
                  "its header says {} tensors and {} values, more than the "
                  "file can hold",
                  tensors, pairs);
    checkpoint_.properties.emplace_back("gguf.version",
                                        std::to_string(version_));
    for (std::uint64_t i = 0; i < pairs; ++i)
      TRY(add_pair().in(fmt::format("its value {}", i)));
    std::vector<Described> described;
    for (std::uint64_t i = 0; i < tensors; ++i)
      described.push_back(TRY(describe().in(fmt::format("its tensor {}", i))));
    begin_ = (cursor_.offset() + alignment_ - 1) / alignment_ * alignment_;
    const std::uint32_t top =
        context_.items_only
            ? context_.parent
            : tree_.add(context_.parent, context_.key, NodeKind::kDict);
    for (const Described& tensor : described)
      add_tensor(tensor, top);
    if (!context_.items_only)
      tree_.close(top);
    report_truncation(described);
    return {};
  }

 private:
  struct Described {
    std::string_view name;
    std::vector<std::int64_t> shape;
    std::uint32_t type = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };

  // Version 1 has counts and lengths of 32 bits.
  Result<std::uint64_t> count() {
    if (version_ == 1)
      return std::uint64_t{TRY(cursor_.little_endian<std::uint32_t>())};
    return cursor_.little_endian<std::uint64_t>();
  }

  Result<std::string_view> text() {
    const std::uint64_t length = TRY(count());
    return as_text(TRY(cursor_.take(length)));
  }

  Result<> add_pair() {
    const std::string_view key = TRY(text());
    const auto type = TRY(cursor_.little_endian<std::uint32_t>());
    std::string shown = TRY(value(type).in(std::string(key)));
    if (key == "general.alignment") {
      std::uint64_t number = 0;
      for (const char c : shown)
        number = number * 10 + static_cast<std::uint64_t>(c - '0');
      constexpr std::uint64_t kMost = 1 << 24;
      if (type != kUint32 || number == 0 || number > kMost ||
          (number & (number - 1)) != 0)
        return fail(ErrorKind::kCorrupt,
                    "general.alignment is {}, which is not a power of two",
                    shown);
      alignment_ = number;
    }
    checkpoint_.properties.emplace_back(key, std::move(shown));
    return {};
  }

  Result<std::string> value(std::uint32_t type) {
    if (type == kString)
      return std::string(TRY(text()));
    if (type == kArray)
      return array();
    const std::uint64_t size = value_bytes(type);
    if (size == 0)
      return fail(ErrorKind::kCorrupt, "there is no value of type {}", type);
    const Bytes bytes = TRY(cursor_.take(size));
    const auto as = [&]<class T>(T number) {
      std::memcpy(&number, bytes.data(), sizeof(number));
      return number;
    };
    switch (type) {
      case kUint8:
        return std::to_string(as(std::uint8_t{}));
      case kInt8:
        return std::to_string(as(std::int8_t{}));
      case kUint16:
        return std::to_string(as(std::uint16_t{}));
      case kInt16:
        return std::to_string(as(std::int16_t{}));
      case kUint32:
        return std::to_string(as(std::uint32_t{}));
      case kInt32:
        return std::to_string(as(std::int32_t{}));
      case kFloat32:
        return fmt::format("{}", as(0.0F));
      case kBool:
        return std::string(as(std::uint8_t{}) != 0 ? "true" : "false");
      case kUint64:
        return std::to_string(as(std::uint64_t{}));
      case kInt64:
        return std::to_string(as(std::int64_t{}));
      default:
        return fmt::format("{}", as(0.0));
    }
  }

  // Vocabularies have a hundred thousand items: their number is enough.
  Result<std::string> array() {
    const auto type = TRY(cursor_.little_endian<std::uint32_t>());
    const std::uint64_t items = TRY(count());
    if (type == kString) {
      for (std::uint64_t i = 0; i < items; ++i)
        TRY(text());
    } else {
      const auto size = value_bytes(type) == 0
                            ? std::nullopt
                            : checked_multiply(items, value_bytes(type));
      if (!size)
        return fail(ErrorKind::kCorrupt,
                    "an array of {} items of type {} cannot be", items, type);
      TRY(cursor_.take(*size));
    }
    return fmt::format("[{} items]", items);
  }

  Result<Described> describe() {
    Described tensor;
    tensor.name = TRY(text());
    const auto dimensions = TRY(cursor_.little_endian<std::uint32_t>());
    if (dimensions > kMostDimensions)
      return fail(ErrorKind::kCorrupt, "it has {} dimensions, more than {}",
                  dimensions, kMostDimensions);
    for (std::uint32_t i = 0; i < dimensions; ++i) {
      const std::uint64_t size = TRY(count());
      if (size > std::uint64_t{1} << 62)
        return fail(ErrorKind::kCorrupt, "its size {} is too large", size);
      tensor.shape.insert(tensor.shape.begin(),
                          static_cast<std::int64_t>(size));
    }
    tensor.type = TRY(cursor_.little_endian<std::uint32_t>());
    tensor.offset = TRY(cursor_.little_endian<std::uint64_t>());
    return tensor;
  }

  static std::optional<std::uint64_t> bytes_of(const Dtype& dtype,
                                               const Described& tensor) {
    std::optional<std::uint64_t> elements = 1;
    for (const std::int64_t size : tensor.shape)
      elements = elements ? checked_multiply(*elements,
                                             static_cast<std::uint64_t>(size))
                          : elements;
    return elements ? checked_multiply(*elements / dtype.packed,
                                       std::uint64_t{dtype.size})
                    : elements;
  }

  void add_tensor(const Described& described, std::uint32_t top) {
    const auto* const type =
        std::ranges::find(kTypes, described.type, &GgmlType::number);
    const bool known = type != kTypes.end();
    const Dtype dtype = known ? type->dtype
                              : Dtype{.name = tree_.keep(fmt::format(
                                          "ggml_type_{}", described.type))};
    const std::optional<std::uint64_t> bytes =
        known ? bytes_of(dtype, described) : std::nullopt;
    Storage& storage = tree_.storages.emplace_back();
    storage.key = described.name;
    storage.file = file_;
    storage.size = bytes.value_or(0);
    const std::uint64_t room =
        begin_ < data_.size() ? data_.size() - begin_ : 0;
    std::string problem;
    if (!known)
      problem = fmt::format("the size of a {} is not known", dtype.name);
    else if (!bytes)
      problem = "its shape is larger than any memory";
    else if (!described.shape.empty() &&
             described.shape.back() % dtype.packed != 0)
      problem = fmt::format(
          "its rows of {} elements are not whole blocks of "
          "{}",
          described.shape.back(), dtype.packed);
    else if (described.offset % alignment_ != 0)
      problem = fmt::format("its offset {} is not a multiple of {}",
                            described.offset, alignment_);
    else if (described.offset > room || *bytes > room - described.offset)
      problem = fmt::format(
          "its {} bytes at byte {} reach beyond the file's end at {}", *bytes,
          begin_ + described.offset, data_.size());
    if (problem.empty())
      storage.extent = {begin_ + described.offset, bytes.value_or(0)};
    else
      report("gguf_tensor",
             fmt::format("tensor '{}': {}", described.name, problem));
    lost_ += problem.empty() ? 0 : 1;
    storage.problem = tree_.keep(problem);
    if (!names_.insert(described.name).second)
      report("gguf_duplicate", fmt::format("tensor '{}' is described more than "
                                           "once",
                                           described.name));
    const auto index = static_cast<std::uint32_t>(tree_.storages.size() - 1);
    const std::uint32_t node =
        tree_.add(top, Key::flat(described.name), NodeKind::kTensor);
    tree_.nodes[node].index =
        tree_.add_plain_tensor(dtype, described.shape, index);
  }

  void report_truncation(std::span<const Described> described) {
    const bool cut =
        std::ranges::any_of(tree_.storages, [](const Storage& storage) {
          return storage.problem.find("beyond the file's end") !=
                 storage.problem.npos;
        });
    if (!cut)
      return;
    checkpoint_.truncation = fmt::format(
        "the file is truncated: {} of {} tensors are whole; the download was "
        "probably interrupted",
        described.size() - lost_, described.size());
    report("truncated", checkpoint_.truncation);
  }

  void report(std::string kind, std::string message) {
    constexpr std::size_t kMostFindings = 1000;
    if (checkpoint_.findings.size() < kMostFindings)
      checkpoint_.report(std::move(kind), Severity::kError, std::move(message),
                         data_.path().filename().string());
  }

  const SourceContext& context_;
  CheckpointContents& checkpoint_;
  Tree& tree_;
  DataFile& data_;
  const std::uint32_t file_;
  Cursor cursor_;
  std::uint32_t version_ = 0;
  std::uint64_t alignment_ = kGgufAlignment;
  std::uint64_t begin_ = 0;
  std::uint64_t lost_ = 0;
  std::unordered_set<std::string_view> names_;
};

}  // namespace

bool is_gguf(Bytes file) {
  return as_text(file).starts_with(kGgufMagic);
}

Result<> add_gguf(std::uint32_t file, const SourceContext& context) {
  return GgufFile(file, context).add();
}

}  // namespace postflight
