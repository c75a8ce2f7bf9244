#include "checkpoint/tensor/export.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/ascii.h"
#include "checkpoint/zip/crc32.h"
#include "checkpoint/zip/format.h"
#include "json/writer.h"

namespace postflight {
namespace {

constexpr std::size_t kStreamPiece = 1 << 20;

template <class T>
void append_number(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Joins small pieces: a call for each of many small tensors would take longer
// than reading them.
class Gathering {
 public:
  explicit Gathering(const ExportSink& sink) : sink_(sink) {}

  Result<> add(Bytes piece) {
    if (piece.size() > kMostGathered - gathered_.size())
      TRY(flush());
    if (piece.size() > kMostGathered / 4) {
      TRY(flush());
      return sink_(piece);
    }
    gathered_.append(as_text(piece));
    return {};
  }

  Result<> flush() {
    if (gathered_.empty())
      return {};
    TRY(sink_(as_bytes(gathered_)));
    gathered_.clear();
    return {};
  }

 private:
  static constexpr std::size_t kMostGathered = 256 << 10;

  const ExportSink& sink_;
  std::string gathered_;
};

Result<> send(const ExportSink& sink, std::string_view text) {
  return sink(as_bytes(text));
}

// numpy's strings of fixed length: U2, S5.
bool is_text(const Dtype& dtype) {
  return dtype.numeric == Numeric::kOpaque && dtype.name.size() > 1 &&
         (dtype.name[0] == 'U' || dtype.name[0] == 'S') &&
         std::ranges::all_of(dtype.name.substr(1), is_digit);
}

// numpy's own file format: a dict as Python writes it, padded so that the
// elements begin at a multiple of 64. Version 2 is for very long dicts.
std::string npy_header(const Tensor& tensor) {
  const std::string_view known = numpy_name(tensor.dtype);
  const std::uint64_t size = tensor.dtype.packed > 1 ? 1 : tensor.dtype.size;
  const std::string type =
      is_text(tensor.dtype) ? fmt::format("<{}", tensor.dtype.name)
      : known.empty()       ? fmt::format("|V{}", size)
                            : fmt::format("{}{}", size > 1 ? "<" : "|", known);
  std::string shape;
  if (tensor.dtype.packed > 1) {
    shape = fmt::format("{},", tensor.bytes());
  } else {
    for (const std::int64_t count : tensor.shape)
      shape += fmt::format("{}{}", shape.empty() ? "" : ", ", count);
    if (tensor.shape.size() == 1)
      shape += ",";
  }
  std::string dict =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                  type, shape);
  constexpr std::size_t kMultiple = 64;
  constexpr std::size_t kMostOfFirst = 0xffff - kMultiple;
  const bool first = dict.size() < kMostOfFirst;
  const std::size_t before = first ? 10 : 12;
  while ((before + dict.size() + 1) % kMultiple != 0)
    dict += ' ';
  dict += '\n';
  std::string header = "\x93NUMPY";
  header += first ? '\1' : '\2';
  header += '\0';
  if (first)
    append_number(header, static_cast<std::uint16_t>(dict.size()));
  else
    append_number(header, static_cast<std::uint32_t>(dict.size()));
  return header + dict;
}

// An archive of arrays. Sizes and CRCs follow the bytes of each, so that no
// array is read twice.
class NpzWriter {
 public:
  NpzWriter(const TensorReader& reader, const ExportSink& sink)
      : reader_(reader), sink_(sink) {}

  Result<> add(const NamedTensor& named) {
    std::string stem = named.name;
    std::ranges::replace(stem, '/', '_');
    const auto [at, fresh] = names_.emplace(stem, named.name);
    if (!fresh)
      return fail(ErrorKind::kUnsupported,
                  "{} and {} would both be {}.npy in the .npz; write "
                  "safetensors, or select one of them by --keys",
                  at->second, named.name, stem);
    const std::string name = stem + ".npy";
    constexpr std::size_t kMostName = 0xffff;
    if (name.size() > kMostName)
      return fail(ErrorKind::kUnsupported,
                  "a key of {} bytes is too long for a name in an .npz, which "
                  "has up to {}; write safetensors or raw bytes",
                  named.name.size(), kMostName);
    Entry entry{name, at_, 0, 0};
    std::string local(kLocalSignature);
    append_number(local, std::uint16_t{45});
    append_number(local, std::uint16_t{0x0808});
    local.append(10, '\0');  // method, time, and the CRC, which comes later
    append_number(local, ~std::uint64_t{0});  // sizes: in the field below
    append_number(local, static_cast<std::uint16_t>(name.size()));
    append_number(local, static_cast<std::uint16_t>(kExtra));
    local += name;
    append_number(local, std::uint16_t{1});
    append_number(local, std::uint16_t{16});
    local.append(16, '\0');
    TRY(write(local));
    const std::string header = npy_header(*named.tensor);
    TRY(write(header));
    entry.crc = crc32_of(as_bytes(header));
    entry.size = header.size() + named.tensor->bytes();
    TRY(reader_.stream(*named.tensor, kStreamPiece,
                       [&](Bytes piece) -> Result<> {
                         entry.crc = crc32_of(piece, entry.crc);
                         at_ += piece.size();
                         return sink_(piece);
                       }));
    std::string descriptor(kDescriptorSignature);
    append_number(descriptor, entry.crc);
    append_number(descriptor, entry.size);
    append_number(descriptor, entry.size);
    TRY(write(descriptor));
    entries_.push_back(entry);
    return {};
  }

  Result<> finish() {
    const std::uint64_t begin = at_;
    for (const Entry& entry : entries_) {
      std::string line(kEntrySignature);
      append_number(line, std::uint16_t{45});
      append_number(line, std::uint16_t{45});
      append_number(line, std::uint16_t{0x0808});
      append_number(line, std::uint16_t{0});
      append_number(line, std::uint32_t{0});
      append_number(line, entry.crc);
      append_number(line, ~std::uint32_t{0});
      append_number(line, ~std::uint32_t{0});
      append_number(line, static_cast<std::uint16_t>(entry.name.size()));
      append_number(line, std::uint16_t{28});
      line.append(10, '\0');  // comment, disk, attributes
      append_number(line, ~std::uint32_t{0});
      line += entry.name;
      append_number(line, std::uint16_t{1});
      append_number(line, std::uint16_t{24});
      append_number(line, entry.size);
      append_number(line, entry.size);
      append_number(line, entry.offset);
      TRY(write(line));
    }
    const std::uint64_t size = at_ - begin;
    std::string end(kZip64EndSignature);
    append_number(end, std::uint64_t{44});
    append_number(end, std::uint16_t{45});
    append_number(end, std::uint16_t{45});
    append_number(end, std::uint64_t{0});  // disks
    append_number(end, std::uint64_t{entries_.size()});
    append_number(end, std::uint64_t{entries_.size()});
    append_number(end, size);
    append_number(end, begin);
    end += kLocatorSignature;
    append_number(end, std::uint32_t{0});
    append_number(end, std::uint64_t{begin + size});
    append_number(end, std::uint32_t{1});
    end += kEndSignature;
    append_number(end, std::uint32_t{0});
    const auto few = static_cast<std::uint16_t>(
        std::min<std::size_t>(entries_.size(), 0xffff));
    append_number(end, few);
    append_number(end, few);
    append_number(end, ~std::uint32_t{0});
    append_number(end, ~std::uint32_t{0});
    append_number(end, std::uint16_t{0});
    return write(end);
  }

 private:
  static constexpr std::size_t kExtra = 20;
  struct Entry {
    std::string name;
    std::uint64_t offset;
    std::uint64_t size;
    std::uint32_t crc;
  };

  Result<> write(std::string_view text) {
    at_ += text.size();
    return send(sink_, text);
  }

  const TensorReader& reader_;
  const ExportSink& sink_;
  std::uint64_t at_ = 0;
  std::vector<Entry> entries_;
  std::map<std::string, std::string> names_;  // and whose they are
};

// Offsets are numbers whatever their size, as other readers expect.
void write_header(std::span<const NamedTensor* const> tensors,
                  JsonWriter& json) {
  json.object();
  json.object("__metadata__");
  json.field("format", "pt");
  json.end();
  std::uint64_t at = 0;
  for (const NamedTensor* const named : tensors) {
    json.object(named->name);
    json.field("dtype", safetensors_name(named->tensor->dtype));
    json.array("shape");
    for (const std::int64_t size : named->tensor->shape)
      json.number(size);
    json.end();
    json.array("data_offsets");
    json.number(at);
    at += named->tensor->bytes();
    json.number(at);
    json.end();
    json.end();
  }
  json.end();
}

Result<> write_safetensors(const TensorReader& reader,
                           std::span<const NamedTensor> tensors,
                           const ExportSink& sink) {
  // As its own writer does: by descending element size, then by name.
  std::vector<const NamedTensor*> order;
  std::set<std::string_view> names = {"__metadata__"};  // reserved
  for (const NamedTensor& named : tensors) {
    if (!names.insert(named.name).second)
      return fail(
          ErrorKind::kUnsupported,
          "safetensors cannot have a tensor called {}, or would have two; "
          "select others by --keys, or write .npz",
          named.name);
    if (safetensors_name(named.tensor->dtype).empty())
      return fail(ErrorKind::kUnsupported,
                  "{}: safetensors has no dtype {}; write .npz or raw bytes",
                  named.name, named.tensor->dtype.name);
    if (!JsonWriter::keeps(named.name))
      return fail(ErrorKind::kUnsupported,
                  "a key is not UTF-8, which safetensors requires");
    order.push_back(&named);
  }
  std::ranges::sort(order, [](const NamedTensor* a, const NamedTensor* b) {
    return a->tensor->dtype.size != b->tensor->dtype.size
               ? a->tensor->dtype.size > b->tensor->dtype.size
               : a->name < b->name;
  });
  std::string header =
      json_text([&order](JsonWriter& json) { write_header(order, json); });
  while (header.size() % 8 != 0)
    header += ' ';
  std::string front;
  append_number(front, static_cast<std::uint64_t>(header.size()));
  TRY(send(sink, front + header));
  for (const NamedTensor* const named : order)
    TRY(reader.stream(*named->tensor, kStreamPiece, sink));
  return {};
}

Result<> write_all(const TensorReader& reader, ExportFormat format,
                   std::span<const NamedTensor> tensors,
                   const ExportSink& sink) {
  switch (format) {
    case ExportFormat::kNpy:
      if (tensors.size() != 1)
        return fail(
            ErrorKind::kUsage,
            "a .npy holds one array, and {} tensors were selected; write "
            ".npz or .safetensors",
            tensors.size());
      TRY(send(sink, npy_header(*tensors[0].tensor)));
      return reader.stream(*tensors[0].tensor, kStreamPiece, sink);
    case ExportFormat::kNpz: {
      NpzWriter writer(reader, sink);
      for (const NamedTensor& named : tensors)
        TRY(writer.add(named));
      return writer.finish();
    }
    case ExportFormat::kRaw:
      for (const NamedTensor& named : tensors)
        TRY(reader.stream(*named.tensor, kStreamPiece, sink));
      return {};
    case ExportFormat::kSafetensors:
      return write_safetensors(reader, tensors, sink);
  }
  return {};
}

}  // namespace

std::optional<ExportFormat> export_format_named(std::string_view name) {
  if (name == "npy")
    return ExportFormat::kNpy;
  if (name == "npz")
    return ExportFormat::kNpz;
  if (name == "safetensors")
    return ExportFormat::kSafetensors;
  if (name == "raw" || name == "bin")
    return ExportFormat::kRaw;
  return std::nullopt;
}

std::optional<ExportFormat> export_format_of_file(std::string_view file) {
  const std::size_t dot = file.rfind('.');
  return dot == file.npos ? std::nullopt
                          : export_format_named(file.substr(dot + 1));
}

Result<> export_tensors(const TensorReader& reader, ExportFormat format,
                        std::span<const NamedTensor> tensors,
                        const ExportSink& sink) {
  Gathering gathering(sink);
  TRY(write_all(reader, format, tensors,
                [&](Bytes piece) { return gathering.add(piece); }));
  return gathering.flush();
}

}  // namespace postflight
