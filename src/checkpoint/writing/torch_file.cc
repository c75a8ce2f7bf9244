// One file as torch.save writes it.

#include <algorithm>
#include <charconv>

#include "checkpoint/model/data_file.h"
#include "checkpoint/tensor/storage_reader.h"
#include "checkpoint/writing/tensor_stream.h"

namespace postflight {
namespace {

constexpr std::uint64_t kUsualAlignment = 64;

// The records of an archive that are kept as they are: the pickle, how to read
// it, and the storages in the order of their numbers.
class KeptArchive {
 public:
  explicit KeptArchive(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint), file_(*checkpoint.files().front()) {}

  Result<> write(const std::string& root, const ByteSink& sink) {
    const ZipDirectory& zip = *file_.zip;
    prefix_ = std::string(zip.root().value_or("")) + "/";
    const std::string pickle = TRY(text("data.pkl"));
    const Result<std::string> byte_order = text("byteorder");
    std::uint64_t alignment = kUsualAlignment;
    if (const Result<std::string> stated = text(".storage_alignment")) {
      std::uint64_t number = 0;
      const char* const end = stated->data() + stated->size();
      constexpr std::uint64_t kMostAlignment = 1 << 15;
      if (std::from_chars(stated->data(), end, number).ptr == end &&
          number > 0 && number <= kMostAlignment)
        alignment = number;
    }
    TorchArchive archive(root, alignment, sink);
    TRY(archive.begin(pickle, byte_order ? *byte_order : "little"));
    for (const ZipEntry* const entry : storages()) {
      Storage storage;
      storage.size = entry->size;
      storage.entry = entry;
      TRY(archive.add(
          entry->name.substr(prefix_.size()), entry->size,
          [&](const ByteSink& next) { return copy(storage, next); }));
    }
    return archive.finish();
  }

 private:
  Result<std::string> text(std::string_view record) const {
    const ZipEntry* const entry =
        file_.zip->find(prefix_ + std::string(record));
    if (entry == nullptr)
      return fail(ErrorKind::kCorrupt, "it has no record {}", record);
    const Contents contents = TRY(file_.zip->contents(*entry));
    TRY(check_crc(*entry, contents.bytes()));
    return std::string(as_text(contents.bytes()));
  }

  // By number; those that are not numbers last.
  std::vector<const ZipEntry*> storages() const {
    std::vector<std::pair<std::uint64_t, const ZipEntry*>> numbered;
    const std::string folder = prefix_ + "data/";
    for (const ZipEntry& entry : file_.zip->entries()) {
      if (!entry.name.starts_with(folder))
        continue;
      const std::string_view key = entry.name.substr(folder.size());
      std::uint64_t number = ~std::uint64_t{0};
      std::from_chars(key.data(), key.data() + key.size(), number);
      numbered.emplace_back(number, &entry);
    }
    std::ranges::stable_sort(numbered, {},
                             &std::pair<std::uint64_t, const ZipEntry*>::first);
    std::vector<const ZipEntry*> entries;
    for (const auto& [number, entry] : numbered)
      entries.push_back(entry);
    return entries;
  }

  Result<> copy(const Storage& storage, const ByteSink& sink) const {
    constexpr std::uint64_t kPiece = 4 << 20;
    StorageReader reader = TRY(StorageReader::open(checkpoint_, storage));
    std::vector<std::byte> room(std::min(kPiece, storage.size));
    for (std::uint64_t at = 0; at < storage.size; at += room.size()) {
      const std::span<std::byte> piece = std::span(room).first(
          std::min<std::uint64_t>(room.size(), storage.size - at));
      TRY(reader.read_at(at, piece));
      TRY(sink(piece));
    }
    return {};
  }

  const Checkpoint& checkpoint_;
  const DataFile& file_;
  std::string prefix_;
};

}  // namespace

Result<> write_torch_file(const Checkpoint& checkpoint, const OutputPlan& plan,
                          const std::string& name, TensorStream& stream,
                          const ByteSink& file) {
  const std::string root = torch_archive_root(name);
  if (plan.as_it_is)
    return KeptArchive(checkpoint).write(root, file);
  std::vector<OutputTensor> outputs;
  for (const WrittenTensor& tensor : plan.tensors)
    outputs.push_back(tensor.output);
  const TorchPickle pickle =
      TRY(plan.is_flat ? pickle_state_dict(checkpoint, outputs)
                       : pickle_tree(checkpoint, outputs, plan.kept));
  TorchArchive archive(root, kUsualAlignment, file);
  TRY(archive.begin(pickle.bytes, "little"));
  for (std::size_t i = 0; i < pickle.storages.size(); ++i)
    TRY(archive.add(fmt::format("data/{}", i), pickle.storages[i].bytes(),
                    [&](const ByteSink& next) {
                      return stream.write(pickle.storages[i], next);
                    }));
  return archive.finish();
}

}  // namespace postflight
