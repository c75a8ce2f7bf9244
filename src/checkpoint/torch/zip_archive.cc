// torch's archives: torch.save since 1.6, TorchScript, torch.package, .pt2. All
// have their records in one folder; the names of the records tell which it is.

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "checkpoint/torch/exported_weights.h"
#include "checkpoint/torch/salvage.h"
#include "checkpoint/torch/sources.h"
#include "checkpoint/torch/tree_builder.h"
#include "checkpoint/zip/format.h"
#include "checkpoint/zip/inflate.h"
#include "stream/memory_stream.h"

namespace postflight {
namespace {

// The fewest bytes that a pickle takes for a tensor.
constexpr std::size_t kLeastTensor = 16;
// The archives in exported programs of torch before 2.8.
constexpr std::string_view kOldWeights[] = {"serialized_state_dict.pt",
                                            "serialized_constants.pt",
                                            "serialized_example_inputs.pt"};

class TorchZip {
 public:
  TorchZip(std::uint32_t file, const SourceContext& context)
      : context_(context),
        checkpoint_(context.checkpoint),
        data_(*context.checkpoint.files[file]),
        file_(file) {}

  Result<Format> add() {
    Result<ZipDirectory> directory =
        ZipDirectory::read(data_.bytes(), context_.limits());
    if (directory) {
      data_.zip = *std::move(directory);
      entries_ = data_.zip->entries();
      for (const Finding& finding : data_.zip->findings())
        checkpoint_.findings.push_back(finding);
    } else {
      TRY(salvage(std::move(directory.error())));
    }
    // About one tensor, storage and node per record: growing the vectors would
    // take as long as all the rest.
    Tree& tree = checkpoint_.tree;
    tree.tensors.reserve(tree.tensors.size() + entries_.size());
    tree.storages.reserve(tree.storages.size() + entries_.size());
    tree.nodes.reserve(tree.nodes.size() + entries_.size() * 5 / 4);
    root_ = root();
    storage_of_.resize(entries_.size(), kNoIndex);
    TRY(read_properties());
    if (has("constants.pkl"))
      return add_torchscript();
    if (has("data.pkl")) {
      TRY(add_pickle("data.pkl", "data/", context_.parent, context_.key));
      return Format::kTorchZip;
    }
    if (context_.nested)
      return fail(ErrorKind::kUnsupported, "an archive without data.pkl");
    if (has("archive_format") || ends_any("serialized_exported_program.json"))
      return add_exported();
    if (has(".data/version") || has(".data/extern_modules"))
      return add_package();
    return fail(ErrorKind::kUnsupported,
                "a zip archive without data.pkl, so not one of torch's");
  }

 private:
  Result<> salvage(Error why) {
    Salvage found = salvage_zip(data_.bytes(), context_.limits());
    if (found.entries.empty())
      return tl::unexpected(std::move(why));
    data_.salvaged = std::move(found.entries);
    data_.salvaged_extents = std::move(found.extents);
    entries_ = data_.salvaged;
    checkpoint_.truncation = found.summary;
    checkpoint_.findings.push_back({"truncated", Severity::kError,
                                    found.summary,
                                    data_.path().filename().string()});
    return {};
  }

  std::string_view root() const {
    if (entries_.empty())
      return {};
    const std::string_view name = entries_.front().name;
    return name.substr(0, std::min(name.find('/'), name.size()));
  }

  const ZipEntry* find(std::string_view record) const {
    const std::string name = fmt::format("{}/{}", root_, record);
    if (data_.zip)
      return data_.zip->find_ignoring_case(name);
    const auto found = std::ranges::find(entries_, name, &ZipEntry::name);
    return found == entries_.end() ? nullptr : &*found;
  }

  bool has(std::string_view record) const { return find(record) != nullptr; }

  bool ends_any(std::string_view suffix) const {
    return std::ranges::any_of(entries_, [suffix](const ZipEntry& entry) {
      return entry.name.ends_with(suffix);
    });
  }

  Result<Contents> contents(const ZipEntry& entry) const {
    if (data_.zip)
      return data_.zip->contents(entry);
    const Extent extent = TRY(data_.extent(entry));
    const Bytes bytes = TRY(slice(data_.bytes(), extent.offset, extent.size));
    if (entry.method == kStored)
      return Contents{bytes, {}};
    return Contents{{}, TRY(inflate(bytes, entry.size).in(entry.name))};
  }

  // The text of a small record about the archive.
  std::optional<std::string> text_of(std::string_view record) const {
    constexpr std::uint64_t kMostText = 4096;
    const ZipEntry* const entry = find(record);
    if (entry == nullptr || entry->size > kMostText)
      return std::nullopt;
    const Result<Contents> text = contents(*entry);
    if (!text)
      return std::nullopt;
    return std::string(as_text(text->bytes()));
  }

  Result<> read_properties() {
    for (const std::string_view record :
         {".data/version", "version", ".format_version", ".storage_alignment",
          "byteorder", ".data/python_version", ".data/serialization_id"}) {
      auto text = text_of(record);
      if (!text)
        continue;
      while (!text->empty() && text->back() == '\n')
        text->pop_back();
      checkpoint_.properties.emplace_back(record, *text);
      if (record != "byteorder")
        continue;
      if (*text != "little" && *text != "big")
        return fail(ErrorKind::kCorrupt,
                    "its byte order is '{}', neither little nor big", *text);
      big_endian_ = *text == "big";
    }
    return {};
  }

  Result<> add_pickle(std::string_view record, std::string_view prefix,
                      std::uint32_t parent, const Key& key) {
    const ZipEntry* const entry = find(record);
    return add_entry(*entry, prefix, "", parent, key);
  }

  Result<> add_entry(const ZipEntry& entry, std::string_view prefix,
                     std::string_view suffix, std::uint32_t parent,
                     const Key& key) {
    // Values and nodes take several times the size of a pickle.
    const std::uint64_t most = checkpoint_.memory_left() / 4;
    if (entry.method != kStored && entry.size > most)
      return fail(ErrorKind::kRefused,
                  "'{}' is {} bytes once inflated, which is more than the {} "
                  "allowed for a file of this size",
                  entry.name, entry.size, most);
    data_.inflated.push_back(std::make_unique<Contents>(TRY(contents(entry))));
    checkpoint_.held_bytes += data_.inflated.back()->inflated.size();
    const Pickle pickle =
        TRY(load_pickle(checkpoint_, data_, data_.inflated.back()->bytes())
                .in(entry.name));
    const std::string before = fmt::format("{}/{}", root_, prefix);
    const std::string after(suffix);
    TreeBuilder builder(checkpoint_.tree,
                        [&](const Value& id, StorageReference& reference) {
                          return resolve(id, reference, before, after);
                        });
    builder.expect(std::min<std::size_t>(
        entries_.size(), data_.inflated.back()->bytes().size() / kLeastTensor));
    return place(builder, pickle.root,
                 context_.items_only ? context_.items_at(parent)
                                     : context_.at(parent, key));
  }

  std::uint32_t resolve(const Value& id, StorageReference& reference,
                        const std::string& prefix, const std::string& suffix) {
    if (!read_storage_id(id, reference))
      return kNoIndex;
    if (reference.number)
      reference.key =
          checkpoint_.tree.keep(fmt::format("{}", *reference.number));
    const ZipEntry* const entry =
        is_next(prefix, reference.key, suffix)
            ? &entries_[next_++]
            : find_record(prefix, reference.key, suffix);
    if (entry == nullptr)
      return missing(reference);
    if (!reference.dtype.known())
      reference.bytes = entry->size;
    if (const std::uint32_t known =
            storage_of_[static_cast<std::size_t>(entry - entries_.data())];
        known != kNoIndex)
      return known;
    const std::uint32_t known = storage_in(*entry, reference.key);
    if (reference.bytes != entry->size)
      checkpoint_.findings.push_back(
          {"storage_size", Severity::kError,
           fmt::format("the pickle says that storage '{}' has {} bytes, its "
                       "record has {}",
                       reference.key, reference.bytes, entry->size),
           std::string(entry->name)});
    return known;
  }

  // Records are mostly in the order in which the pickle names them.
  bool is_next(std::string_view prefix, std::string_view key,
               std::string_view suffix) const {
    if (next_ >= entries_.size())
      return false;
    std::string_view name = entries_[next_].name;
    if (name.size() != prefix.size() + key.size() + suffix.size() ||
        !name.starts_with(prefix))
      return false;
    name.remove_prefix(prefix.size());
    return name.starts_with(key) && name.ends_with(suffix);
  }

  const ZipEntry* find_record(std::string_view prefix, std::string_view key,
                              std::string_view suffix = {}) {
    name_.assign(prefix);
    name_ += key;
    name_ += suffix;
    const ZipEntry* found = nullptr;
    if (data_.zip) {
      found = data_.zip->find_ignoring_case(name_);
    } else {
      const auto at = std::ranges::find(entries_, name_, &ZipEntry::name);
      found = at == entries_.end() ? nullptr : &*at;
    }
    if (found != nullptr)
      next_ = static_cast<std::size_t>(found - entries_.data()) + 1;
    return found;
  }

  std::uint32_t missing(const StorageReference& reference) {
    const auto known =
        std::ranges::find(missing_, reference.key,
                          &std::pair<std::string_view, std::uint32_t>::first);
    if (known != missing_.end())
      return known->second;
    Storage& storage = checkpoint_.tree.storages.emplace_back();
    const auto index =
        static_cast<std::uint32_t>(checkpoint_.tree.storages.size() - 1);
    storage.key = reference.key;
    storage.file = file_;
    storage.size = reference.bytes;
    storage.problem = checkpoint_.tree.keep(
        checkpoint_.truncation.empty()
            ? fmt::format("record {} is not in the archive", name_)
            : fmt::format("record {} is beyond the end of the truncated file",
                          name_));
    // A hostile pickle may name a million; they are in the tree in any case.
    if (missing_.size() < 1000)
      missing_.emplace_back(reference.key, index);
    return index;
  }

  Result<Format> add_torchscript() {
    if (!has("data.pkl"))
      return fail(ErrorKind::kCorrupt,
                  "a TorchScript archive without data.pkl");
    TRY(add_pickle("data.pkl", "data/", context_.parent, context_.key));
    return Format::kTorchScript;
  }

  // A package holds any number of pickles, each with its own name.
  Result<Format> add_package() {
    Tree& tree = checkpoint_.tree;
    const std::uint32_t top =
        tree.add(context_.parent, context_.key, NodeKind::kDict);
    for (const ZipEntry& entry : entries_) {
      if (!entry.name.ends_with(".pkl"))
        continue;
      const std::string_view name = entry.name.substr(root_.size() + 1);
      TRY(add_entry(entry, ".data/", ".storage", top, Key::string(name)));
    }
    tree.close(top);
    return Format::kTorchPackage;
  }

  // The weights of an exported program are raw records, described by a JSON
  // file beside them; torch before 2.8 had archives of torch.save instead.
  // Other weights are listed as bytes.
  Result<Format> add_exported() {
    Tree& tree = checkpoint_.tree;
    const std::uint32_t top =
        tree.add(context_.parent, context_.key, NodeKind::kDict);
    for (const ZipEntry& entry : entries_)
      if (entry.name.ends_with("_weights_config.json") ||
          entry.name.ends_with("_constants_config.json"))
        TRY(add_exported_weights(entry, top));
    for (const std::string_view record : kOldWeights) {
      const ZipEntry* const entry = find(record);
      if (entry != nullptr && !add_nested(*entry, {}, top, true))
        add_nested(*entry, Key::string(record), top, false);
    }
    for (const ZipEntry& entry : entries_) {
      const std::string_view name =
          entry.name.substr(std::min(root_.size() + 1, entry.name.size()));
      const bool holds_data = name.starts_with("data/weights/") ||
                              name.starts_with("data/constants/") ||
                              name.ends_with(".pt");
      const auto place = static_cast<std::size_t>(&entry - entries_.data());
      if (!holds_data || entry.name.ends_with(".json") ||
          entry.name.ends_with("/") || storage_of_[place] != kNoIndex ||
          nested_.contains(place))
        continue;
      const auto size = static_cast<std::int64_t>(entry.size);
      const std::uint32_t tensor = tree.add_plain_tensor(
          dtype_named("uint8"), std::span(&size, 1), storage_in(entry, name));
      tree.nodes[tree.add(top, Key::string(name), NodeKind::kTensor)].index =
          tensor;
    }
    tree.close(top);
    return Format::kExported;
  }

  Result<> add_exported_weights(const ZipEntry& config, std::uint32_t top) {
    Tree& tree = checkpoint_.tree;
    const Contents json = TRY(contents(config));
    data_.builders.push_back(std::make_unique<Builder>());
    const std::vector<ExportedWeight> weights =
        TRY(read_exported_weights(json.bytes(), *data_.builders.back())
                .in(config.name));
    const std::string_view folder =
        config.name.substr(0, config.name.rfind('/') + 1);
    for (const ExportedWeight& weight : weights) {
      const ZipEntry* const entry = find_record(folder, weight.record);
      if (weight.pickled && entry != nullptr) {
        add_nested(*entry, Key::string(weight.name), top, false);
        continue;
      }
      StorageReference reference;
      reference.key = weight.record;
      const std::uint32_t storage = entry != nullptr
                                        ? storage_in(*entry, weight.record)
                                        : missing(reference);
      const std::uint32_t index =
          tree.add_plain_tensor(weight.dtype, weight.shape, storage);
      Tensor& tensor = tree.tensors[index];
      tensor.stride = tree.keep(weight.stride);
      tensor.role = weight.role;
      tensor.requires_grad = weight.requires_grad;
      tensor.device = weight.device;
      if (entry != nullptr)
        tensor.problem = tree.keep(problem_of(weight, tensor, entry->size));
      tree.nodes[tree.add(top, Key::string(weight.name), NodeKind::kTensor)]
          .index = index;
    }
    return {};
  }

  // Adds the tree of an archive inside this one; false, and nothing added, if
  // it is not one. It cannot be an exported program in turn. Once as many bytes
  // were read as this file has, no more are, so that none is read again and
  // again.
  bool add_nested(const ZipEntry& entry, const Key& key, std::uint32_t parent,
                  bool items_only) {
    const auto place = static_cast<std::size_t>(&entry - entries_.data());
    if (context_.nested || nested_.contains(place) ||
        nested_bytes_ > data_.size())
      return false;
    Result<std::unique_ptr<DataFile>> file = nested_file(entry);
    if (!file || !is_torch_zip((*file)->bytes()))
      return false;
    const Tree& tree = checkpoint_.tree;
    const std::size_t nodes = tree.nodes.size();
    const std::size_t properties = checkpoint_.properties.size();
    const std::size_t findings = checkpoint_.findings.size();
    const std::uint32_t index = checkpoint_.add(*std::move(file));
    SourceContext inside =
        items_only ? context_.items_at(parent) : context_.at(parent, key);
    inside.nested = true;
    const Result<Format> added = add_torch_zip(index, inside);
    // It has a version and a byte order like any other.
    checkpoint_.properties.resize(properties);
    nested_bytes_ += entry.compressed_size;
    if (!added && tree.nodes.size() == nodes) {
      checkpoint_.findings.erase(
          checkpoint_.findings.begin() + static_cast<std::ptrdiff_t>(findings),
          checkpoint_.findings.end());
      return false;
    }
    nested_.insert(place);
    return true;
  }

  Result<std::unique_ptr<DataFile>> nested_file(const ZipEntry& entry) const {
    if (entry.method == kStored)
      return DataFile::part(data_, TRY(data_.extent(entry)));
    const Contents inflated = TRY(contents(entry));
    MemorySource source(inflated.bytes());
    return DataFile::in_memory(
        data_, TRY(WholeStream::read(source, inflated.bytes().size(),
                                     context_.limits().max_inflated_bytes)));
  }

  static std::string problem_of(const ExportedWeight& weight, Tensor& tensor,
                                std::uint64_t available) {
    if (weight.offset < 0)
      return fmt::format("it begins at element {} of its record",
                         weight.offset);
    tensor.offset = static_cast<std::uint64_t>(weight.offset);
    if (!tensor.dtype.known())
      return "its dtype is unknown";
    return check_bounds(tensor, available);
  }

  std::uint32_t storage_in(const ZipEntry& entry, std::string_view key) {
    std::uint32_t& known =
        storage_of_[static_cast<std::size_t>(&entry - entries_.data())];
    if (known != kNoIndex)
      return known;
    Storage& storage = checkpoint_.tree.storages.emplace_back();
    known = static_cast<std::uint32_t>(checkpoint_.tree.storages.size() - 1);
    storage.key = key;
    storage.file = file_;
    storage.entry = &entry;
    storage.size = entry.size;
    storage.big_endian = big_endian_;
    return known;
  }

  const SourceContext& context_;
  CheckpointContents& checkpoint_;
  DataFile& data_;
  const std::uint32_t file_;
  std::span<const ZipEntry> entries_;
  std::string_view root_;
  bool big_endian_ = false;
  std::size_t next_ = 0;
  std::string name_;
  std::vector<std::uint32_t> storage_of_;  // by entry
  std::vector<std::pair<std::string_view, std::uint32_t>> missing_;
  std::unordered_set<std::size_t> nested_;  // entries that were opened
  std::uint64_t nested_bytes_ = 0;
};

}  // namespace

bool is_torch_zip(Bytes file) {
  return as_text(file).starts_with(kLocalSignature);
}

Result<Format> add_torch_zip(std::uint32_t file, const SourceContext& context) {
  return TorchZip(file, context).add();
}

}  // namespace postflight
