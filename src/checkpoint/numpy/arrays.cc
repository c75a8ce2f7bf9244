// NumPy's files: a header that is a dict of Python, and the elements behind it.
// An .npz is a zip archive of them, stored or deflated.

#include "checkpoint/numpy/arrays.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/numpy/header.h"
#include "checkpoint/zip/format.h"
#include "checkpoint/zip/inflate.h"
#include "checkpoint/zip/local_header.h"

namespace postflight {
namespace {

constexpr std::string_view kEnding = ".npy";

class NumpyArrays {
 public:
  NumpyArrays(std::uint32_t file, const SourceContext& context)
      : context_(context),
        checkpoint_(context.checkpoint),
        tree_(context.checkpoint.tree),
        data_(*context.checkpoint.files[file]),
        file_(file) {}

  Result<> add() {
    if (is_numpy_file(data_.bytes())) {
      const Bytes bytes = data_.bytes();
      Storage storage;
      storage.file = file_;
      return add_array(bytes, bytes.size(), storage, context_.parent,
                       context_.key);
    }
    data_.zip.emplace(
        TRY(ZipDirectory::read(data_.bytes(), context_.limits())));
    for (Finding finding : data_.zip->findings()) {
      finding.where = finding.where.empty() ? name() : finding.where;
      checkpoint_.findings.push_back(std::move(finding));
    }
    const std::uint32_t top =
        context_.items_only
            ? context_.parent
            : tree_.add(context_.parent, context_.key, NodeKind::kDict);
    for (const ZipEntry& entry : data_.zip->entries())
      TRY(add_entry(entry, top).in(std::string(entry.name)));
    if (!context_.items_only)
      tree_.close(top);
    return {};
  }

 private:
  std::string name() const { return data_.path().filename().string(); }

  Result<> add_entry(const ZipEntry& entry, std::uint32_t top) {
    std::string_view key = entry.name;
    if (!key.ends_with(kEnding)) {
      checkpoint_.report("foreign_record", Severity::kWarning,
                         "it is no array, and was not looked into",
                         std::string(entry.name));
      return {};
    }
    key.remove_suffix(kEnding.size());
    const Result<Bytes> stored = data_.zip->stored_bytes(entry);
    Storage storage;
    storage.key = key;
    storage.file = file_;
    storage.entry = &entry;
    if (const Result<> readable =
            stored ? check_entry(entry, stored->size(), context_.limits())
                   : Result<>(fail(stored.error().kind(), "{}",
                                   stored.error().message()));
        !readable) {
      add_unreadable(key, readable.error().message(), top);
      return {};
    }
    constexpr std::size_t kLongestHeader = 1 << 20;
    std::vector<std::byte> inflated;
    Bytes front = *stored;
    if (entry.method == kDeflated) {
      inflated = inflate_front(*stored, kLongestHeader);
      front = inflated;
    }
    return add_array(front, entry.size, storage, top, Key::flat(key));
  }

  void add_unreadable(std::string_view key, std::string_view problem,
                      std::uint32_t top) {
    Storage storage;
    storage.key = key;
    storage.file = file_;
    storage.problem = tree_.keep(problem);
    tree_.storages.push_back(storage);
    const std::uint32_t tensor = tree_.add_plain_tensor(
        Dtype{}, {}, static_cast<std::uint32_t>(tree_.storages.size() - 1));
    const std::uint32_t node =
        tree_.add(top, Key::flat(key), NodeKind::kTensor);
    tree_.nodes[node].index = tensor;
  }

  // `front` begins with the array's file, which has `size` bytes.
  Result<> add_array(Bytes front, std::uint64_t size, Storage storage,
                     std::uint32_t parent, const Key& key) {
    const auto header = read_numpy_header(front);
    if (!header)
      return fail(ErrorKind::kCorrupt, "its NumPy header is damaged");
    const Dtype dtype =
        header->bytes
            ? dtype_of_numpy(tree_.keep(header->element))
            : Dtype{.name = header->objects ? "object" : "structured"};
    storage.big_endian = header->big_endian;
    storage.size = size;
    std::uint64_t first = 0;  // element of the storage
    if (header->objects)
      storage.problem =
          "its elements are Python objects, which only unpickling would make";
    else if (!header->bytes || !dtype.known())
      storage.problem = "its dtype is not read";
    else if (*header->bytes > size - header->data)
      storage.problem = tree_.keep(fmt::format(
          "its elements take {} bytes, but {} follow its header; the writer "
          "was probably killed, or the copy was interrupted",
          *header->bytes, size - header->data));
    else if (header->data % dtype.size == 0)
      first = header->data / dtype.size;
    else if (storage.entry != nullptr && storage.entry->method != kStored)
      storage.problem =
          "its elements begin at an odd byte of a compressed record";
    if (storage.entry == nullptr ||
        (storage.problem.empty() && first * dtype.size != header->data))
      TRY(place(*header, storage, first));
    else if (storage.problem.empty() && header->data + *header->bytes < size)
      report_rest(size - header->data - *header->bytes, storage.entry->name);
    tree_.storages.push_back(storage);
    const std::uint32_t tensor = tree_.add_plain_tensor(
        dtype, header->shape,
        static_cast<std::uint32_t>(tree_.storages.size() - 1));
    Tensor& made = tree_.tensors[tensor];
    made.offset = first;
    made.type = "numpy.ndarray";
    if (header->fortran)
      transpose(made);
    if (made.problem.empty())
      made.problem = tree_.keep(check_bounds(made, storage.size));
    const std::uint32_t node = tree_.add(parent, key, NodeKind::kTensor);
    tree_.nodes[node].index = tensor;
    return {};
  }

  // As bytes of the file, if it is not a record or begins inside an element.
  Result<> place(const NumpyHeader& header, Storage& storage,
                 std::uint64_t& first) {
    std::uint64_t begin = 0;
    if (storage.entry != nullptr)
      begin = TRY(data_.zip->extent(*storage.entry)).offset;
    const std::uint64_t rest = storage.size - header.data;
    const std::uint64_t used = std::min(header.bytes.value_or(rest), rest);
    if (used < rest)
      report_rest(rest - used, storage.entry == nullptr ? std::string_view()
                                                        : storage.entry->name);
    storage.extent = {begin + header.data, used};
    storage.size = used;
    storage.entry = nullptr;
    first = 0;
    return {};
  }

  void report_rest(std::uint64_t count, std::string_view where) {
    checkpoint_.report("trailing_bytes", Severity::kError,
                       fmt::format("{} bytes follow the elements", count),
                       where.empty() ? name() : std::string(where));
  }

  void transpose(Tensor& tensor) {
    std::vector<std::int64_t> strides;
    std::int64_t step = 1;
    for (const std::int64_t size : tensor.shape) {
      strides.push_back(step);
      if (size > 0)
        step = checked_multiply(step, size).value_or(1);
    }
    tensor.stride = tree_.keep(std::span<const std::int64_t>(strides));
  }

  const SourceContext& context_;
  CheckpointContents& checkpoint_;
  Tree& tree_;
  DataFile& data_;
  const std::uint32_t file_;
};

}  // namespace

bool is_numpy(Bytes file) {
  if (is_numpy_file(file))
    return true;
  const auto first = LocalHeader::read(file, 0);
  return first && first->name.ends_with(kEnding);
}

Result<> add_numpy(std::uint32_t file, const SourceContext& context) {
  return NumpyArrays(file, context).add();
}

}  // namespace postflight
