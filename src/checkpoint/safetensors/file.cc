// safetensors: the length of a JSON header, the header, and the tensors'
// bytes, row-major and little-endian, without holes or overlaps.

#include <algorithm>
#include <memory>

#include "checkpoint/safetensors/safetensors.h"
#include "json/json_value.h"

namespace postflight {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::uint64_t kMaxHeader = 100'000'000;  // safetensors' own cap

struct Entry {
  std::string_view name;
  Extent extent;  // in the file
};

std::optional<std::uint64_t> size_of(const Value* value) {
  if (value == nullptr || !value->is(Kind::kInteger) || value->integer() < 0)
    return std::nullopt;
  return static_cast<std::uint64_t>(value->integer());
}

class Safetensors {
 public:
  Safetensors(std::uint32_t file, const SourceContext& context)
      : context_(context),
        checkpoint_(context.checkpoint),
        tree_(context.checkpoint.tree),
        data_(*context.checkpoint.files[file]),
        file_(file) {}

  Result<> add() {
    const Bytes bytes = data_.bytes();
    Cursor cursor(bytes);
    const auto length = TRY(cursor.little_endian<std::uint64_t>());
    if (length > kMaxHeader)
      return fail(ErrorKind::kRefused,
                  "its header of {} bytes is longer than the {} safetensors "
                  "allows",
                  length, kMaxHeader);
    if (length > cursor.remaining())
      return fail(ErrorKind::kCorrupt,
                  "its header of {} bytes reaches beyond the file's end at {}; "
                  "the writer was probably killed, or the copy was interrupted",
                  length, bytes.size());
    const Bytes header = TRY(cursor.take(length));
    begin_ = cursor.offset();
    data_.builders.push_back(std::make_unique<Builder>());
    const Value root = TRY(parse_json(header, *data_.builders.back()));
    if (!root.is(Kind::kDict))
      return fail(ErrorKind::kCorrupt, "its header is not a JSON object");
    const std::string_view text = as_text(header);
    if (const std::string_view padding = text.substr(text.rfind('}') + 1);
        padding.find_first_not_of(" \t\n\r") != padding.npos)
      report("safetensors_padding", Severity::kError,
             "its header is padded with something other than white space");
    if (text.starts_with(kByteOrderMark))
      report("safetensors_bom", Severity::kError,
             "its header begins with a byte order mark, which safetensors "
             "refuses");
    const std::uint32_t top =
        context_.items_only
            ? context_.parent
            : tree_.add(context_.parent, context_.key, NodeKind::kDict);
    for (const Pair& pair : root.pairs())
      TRY(add_entry(pair, top));
    if (!context_.items_only)
      tree_.close(top);
    check_coverage();
    return {};
  }

 private:
  Result<> add_entry(const Pair& pair, std::uint32_t top) {
    const std::string_view name = pair.key.text();
    if (name == "__metadata__") {
      add_metadata(pair.value);
      return {};
    }
    if (!pair.value.is(Kind::kDict))
      return fail(ErrorKind::kCorrupt,
                  "tensor '{}' is not described by an object", name);
    const Value* const dtype = pair.value.find("dtype");
    const Value* const shape = pair.value.find("shape");
    const Value* const offsets = pair.value.find("data_offsets");
    if (dtype == nullptr || !dtype->is(Kind::kString) || shape == nullptr ||
        !shape->is(Kind::kList) || offsets == nullptr ||
        !offsets->is(Kind::kList) || offsets->items().size() != 2)
      return fail(ErrorKind::kCorrupt,
                  "tensor '{}' lacks its dtype, shape or data_offsets", name);
    const auto first = size_of(&offsets->items()[0]);
    const auto last = size_of(&offsets->items()[1]);
    if (!first || !last || *last < *first)
      return fail(ErrorKind::kCorrupt, "tensor '{}' has invalid data_offsets",
                  name);
    std::vector<std::int64_t> sizes;
    for (const Value& size : shape->items()) {
      if (!size_of(&size))
        return fail(ErrorKind::kCorrupt, "tensor '{}' has an invalid size",
                    name);
      sizes.push_back(size.integer());
    }
    add_tensor(name, dtype->text(), sizes, {*first, *last - *first}, top);
    return {};
  }

  void add_metadata(const Value& metadata) {
    bool texts = metadata.is(Kind::kDict);
    const std::span<const Pair> fields =
        texts ? metadata.pairs() : std::span<const Pair>();
    for (const Pair& field : fields) {
      if (field.value.is(Kind::kString))
        checkpoint_.properties.emplace_back(field.key.text(),
                                            field.value.text());
      else
        texts = false;
    }
    if (!texts)
      report("safetensors_metadata", Severity::kError,
             "its __metadata__ is not an object of strings");
  }

  // What safetensors refuses, though its bytes are there.
  void check_dtype(std::string_view name, std::string_view dtype,
                   const std::vector<std::int64_t>& shape) {
    const bool four_bits = dtype == "F4";
    const bool six_bits = dtype.starts_with("F6_");
    if (!four_bits && !six_bits && !dtype_of_safetensors(dtype)) {
      report("safetensors_dtype", Severity::kError,
             fmt::format("tensor '{}' has the dtype {}, which safetensors does "
                         "not know",
                         name, dtype));
      return;
    }
    std::uint64_t bits = four_bits ? 4 : six_bits ? 6 : 8;
    for (const std::int64_t size : shape)
      bits *=
          static_cast<std::uint64_t>(size);  // only its last three bits count
    if (bits % 8 != 0)
      report("safetensors_misaligned", Severity::kError,
             fmt::format("tensor '{}' ends inside a byte, which safetensors "
                         "refuses",
                         name));
  }

  void add_tensor(std::string_view name, std::string_view dtype_text,
                  const std::vector<std::int64_t>& shape, Extent extent,
                  std::uint32_t top) {
    Storage& storage = tree_.storages.emplace_back();
    storage.key = name;
    storage.file = file_;
    storage.size = extent.size;
    const std::uint64_t room = data_.size() - begin_;
    if (extent.offset > room || extent.size > room - extent.offset)
      storage.problem = tree_.keep(
          fmt::format("its bytes {} to {} reach beyond the file's end at {}",
                      extent.offset, extent.offset + extent.size, room));
    else
      storage.extent = {begin_ + extent.offset, extent.size};
    entries_.push_back({name, extent});
    const Dtype dtype =
        dtype_of_safetensors(dtype_text).value_or(Dtype{.name = dtype_text});
    check_dtype(name, dtype_text, shape);
    const auto index = static_cast<std::uint32_t>(tree_.storages.size() - 1);
    const std::uint32_t tensor = tree_.add_plain_tensor(dtype, shape, index);
    Tensor& made = tree_.tensors[tensor];
    if (!made.dtype.known() && made.problem.empty() && made.elements() > 0) {
      if (extent.size % made.elements() == 0 &&
          extent.size / made.elements() <= 64)
        made.dtype.size =
            static_cast<std::uint32_t>(extent.size / made.elements());
      else
        made.problem = tree_.keep(
            fmt::format("the size of a {} is not known", dtype_text));
    }
    if (made.problem.empty() && made.bytes() != extent.size)
      made.problem = tree_.keep(
          fmt::format("its shape and dtype make {} bytes, but its offsets {}",
                      made.bytes(), extent.size));
    const std::uint32_t node =
        tree_.add(top, Key::flat(name), NodeKind::kTensor);
    tree_.nodes[node].index = tensor;
  }

  // The format forbids holes, overlaps, duplicate names and bytes after the
  // last tensor: each can hide something.
  void check_coverage() {
    std::vector<const Entry*> order;
    for (const Entry& entry : entries_)
      order.push_back(&entry);
    std::ranges::sort(order, {}, [](const Entry* entry) {
      return std::pair(entry->extent.offset, entry->extent.size);
    });
    const std::string file = data_.path().filename().string();
    const std::uint64_t room = data_.size() - begin_;
    std::uint64_t at = 0;
    std::uint64_t lost = 0;
    for (const Entry* const entry : order) {
      if (entry->extent.size > room ||
          entry->extent.offset > room - entry->extent.size) {
        ++lost;
        continue;
      }
      if (entry->extent.offset > at)
        report("safetensors_hole", Severity::kError,
               fmt::format("{} bytes before tensor '{}' belong to none",
                           entry->extent.offset - at, entry->name));
      else if (entry->extent.offset < at && entry->extent.size > 0)
        report(
            "safetensors_overlap", Severity::kError,
            fmt::format("tensor '{}' overlaps the one before it", entry->name));
      at = std::max(at, entry->extent.end());
    }
    if (lost > 0) {
      checkpoint_.truncation = fmt::format(
          "the file is truncated: {} of {} tensors are whole; the writer was "
          "probably killed, or the copy was interrupted",
          entries_.size() - lost, entries_.size());
      report("truncated", Severity::kError, checkpoint_.truncation);
    } else if (at < room) {
      report("trailing_bytes", Severity::kError,
             fmt::format("{} bytes follow the last tensor", room - at));
    }
    std::vector<std::string_view> names;
    for (const Entry& entry : entries_)
      names.push_back(entry.name);
    std::ranges::sort(names);
    const auto twice = std::ranges::adjacent_find(names);
    if (twice != names.end())
      report("safetensors_duplicate", Severity::kError,
             fmt::format("tensor '{}' appears in the header more than once",
                         *twice));
  }

  void report(std::string kind, Severity severity, std::string message) {
    // A hostile header can be wrong a million times.
    constexpr std::size_t kMostFindings = 1000;
    if (checkpoint_.findings.size() < kMostFindings)
      checkpoint_.findings.push_back({std::move(kind), severity,
                                      std::move(message),
                                      data_.path().filename().string()});
  }

  const SourceContext& context_;
  CheckpointContents& checkpoint_;
  Tree& tree_;
  DataFile& data_;
  const std::uint32_t file_;
  std::uint64_t begin_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace

bool is_safetensors(Bytes file) {
  return file.size() >= 10 && file[8] == std::byte{'{'} &&
         load_little_endian<std::uint64_t>(file.data()) <= kMaxHeader;
}

Result<> add_safetensors(std::uint32_t file, const SourceContext& context) {
  return Safetensors(file, context).add();
}

}  // namespace postflight
