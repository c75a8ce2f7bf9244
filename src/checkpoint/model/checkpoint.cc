#include "checkpoint/model/checkpoint.h"

#include <algorithm>
#include <system_error>

#include "checkpoint/torch/pickle_streams.h"
#include "checkpoint/zip/format.h"
#include "stream/tar/header.h"

namespace postflight {
namespace {

bool is_safetensors(Bytes bytes) {
  if (bytes.size() < 10 || bytes[8] != std::byte{'{'})
    return false;
  return load_little_endian<std::uint64_t>(bytes.data()) <= 100'000'000;
}

// Also where its checksum does not hold.
bool has_tar_magic(Bytes bytes) {
  return bytes.size() >= kTarBlock && as_text(bytes).substr(257, 5) == "ustar";
}

}  // namespace

std::string_view format_title(Format format) {
  switch (format) {
    case Format::kTorchZip:
      return "torch.save archive";
    case Format::kTorchScript:
      return "TorchScript archive";
    case Format::kTorchPackage:
      return "torch.package archive";
    case Format::kExported:
      return "exported program (.pt2)";
    case Format::kLegacy:
      return "torch.save stream from before 1.6";
    case Format::kTar:
      return "torch.save tar from before 0.1.10";
    case Format::kSafetensors:
      return "safetensors file";
    case Format::kShards:
      return "sharded folder";
    case Format::kRanks:
      return "folder of rank files";
    case Format::kDistributed:
      return "distributed checkpoint";
    case Format::kPickle:
      return "bare pickle";
  }
  return "";
}

std::string_view format_name(Format format) {
  switch (format) {
    case Format::kTorchZip:
      return "torch_zip";
    case Format::kTorchScript:
      return "torchscript";
    case Format::kTorchPackage:
      return "torch_package";
    case Format::kExported:
      return "pt2";
    case Format::kLegacy:
      return "torch_legacy";
    case Format::kTar:
      return "torch_tar";
    case Format::kSafetensors:
      return "safetensors";
    case Format::kShards:
      return "shards";
    case Format::kRanks:
      return "ranks";
    case Format::kDistributed:
      return "dcp";
    case Format::kPickle:
      return "pickle";
  }
  return "";
}

Result<Checkpoint> Checkpoint::open(const std::filesystem::path& path,
                                    const OpenOptions& options) {
  Checkpoint checkpoint;
  checkpoint.path = path;
  checkpoint.extensions = options.extensions;
  checkpoint.secret_key = options.key;
  const SourceContext context{checkpoint, options.limits};
  std::error_code error;
  Result<Format> format = std::filesystem::is_directory(path, error)
                              ? add_folder(path, options, context)
                              : add_file(path, context);
  // What was cut off meanwhile has been read as zeros.
  for (const std::unique_ptr<DataFile>& file : checkpoint.files)
    if (file->shrank())
      return fail(ErrorKind::kIo,
                  "{}: it became shorter while it was read; is it still being "
                  "written?",
                  file->path().string());
  checkpoint.format = TRY(std::move(format));
  return checkpoint;
}

Result<Format> add_file(const std::filesystem::path& path,
                        const SourceContext& context) {
  Checkpoint& checkpoint = context.checkpoint;
  checkpoint.files.push_back(
      TRY(DataFile::open(path, context.limits,
                         checkpoint.files.size() < DataFile::kMostKeptOpen)));
  const auto file = static_cast<std::uint32_t>(checkpoint.files.size() - 1);
  const Bytes bytes = checkpoint.files[file]->bytes();
  const auto named = [&path](Result<> result, Format format) -> Result<Format> {
    if (!result)
      return tl::unexpected(std::move(result.error()).in(path.string()));
    return format;
  };
  if (bytes.empty())
    return fail(ErrorKind::kCorrupt,
                "{}: the file is empty; was its writer killed?", path.string());
  if (as_text(bytes).starts_with(kLocalSignature)) {
    Result<Format> format = add_torch_zip(file, context);
    if (!format)
      return tl::unexpected(std::move(format.error()).in(path.string()));
    return format;
  }
  if (path.filename().string().ends_with(".index.json"))
    return fail(ErrorKind::kUsage,
                "{}: this is the list of a sharded checkpoint's files; name "
                "their folder instead",
                path.string());
  if (is_safetensors(bytes) || path.extension() == ".safetensors")
    return named(add_safetensors(file, context), Format::kSafetensors);
  if (has_tar_magic(bytes) || looks_like_tar(bytes))
    return named(add_tar(file, context), Format::kTar);
  Machine machine(context.limits);
  const Result<Pickle> first = machine.load(bytes);
  if (first && first->root.is(Kind::kBigInteger) &&
      is_legacy_magic(first->root.text()))
    return named(add_legacy_stream(file, context), Format::kLegacy);
  return named(add_bare_pickle(file, context), Format::kPickle);
}

Result<> add_bare_pickle(std::uint32_t file, const SourceContext& context) {
  DataFile& data = *context.checkpoint.files[file];
  data.machines.push_back(std::make_unique<Machine>(context.limits));
  Result<Pickle> pickle = data.machines.back()->load(data.bytes());
  if (!pickle) {
    // The same question has been answered for `postflight pickle`.
    Allowance allowance(data.size(), context.limits);
    TRY(find_pickle_streams(data.bytes(), context.limits, allowance));
    return tl::unexpected(std::move(pickle.error()));
  }
  if (pickle->size < data.size())
    context.checkpoint.findings.push_back(
        {"trailing_bytes", Severity::kWarning,
         fmt::format("{} bytes follow the pickle", data.size() - pickle->size),
         data.path().filename().string()});
  TreeBuilder builder(context.checkpoint.tree,
                      [](const Value&, StorageReference&) { return kNoIndex; });
  return place(builder, pickle->root, context);
}

Result<> place(TreeBuilder& builder, const Value& root,
               const SourceContext& context) {
  if (!context.items_only) {
    builder.build(root, context.parent, context.key);
    return {};
  }
  if (!builder.build_items(root, context.parent))
    return fail(ErrorKind::kCorrupt, "it holds no dict of tensors");
  return {};
}

void spread_problems(Tree& tree) {
  for (Tensor& tensor : tree.tensors)
    if (tensor.storage != kNoIndex && tensor.problem.empty())
      tensor.problem = tree.storages[tensor.storage].problem;
}

std::vector<Key> Checkpoint::keys_to(std::uint32_t node) const {
  // Of lists inside lists without end, all paths together would be as long as
  // the square of their number; no real tree is nearly as deep.
  constexpr std::size_t kMostKeys = 128;
  std::vector<Key> keys;
  for (; node != 0 && keys.size() < kMostKeys; node = tree.nodes[node].parent)
    keys.push_back(tree.nodes[node].key);
  if (node != 0)
    keys.push_back(Key::other("..."));
  std::ranges::reverse(keys);
  return keys;
}

std::string Checkpoint::path_of(std::uint32_t node) const {
  std::string text;
  write_path(node, text);
  return text;
}

void Checkpoint::write_path(std::uint32_t node, std::string& text) const {
  text.clear();
  if (tree.nodes[node].parent == 0) {  // as most are in a state dict
    append_key(tree.nodes[node].key, text);
    return;
  }
  for (const Key& key : keys_to(node))
    append_key(key, text);
}

std::string Checkpoint::path_json(std::uint32_t node) const {
  std::string text = "[";
  for (const Key& key : keys_to(node)) {
    if (text.size() > 1)
      text += ',';
    append_key_json(key, text);
  }
  return text + "]";
}

std::uint32_t Checkpoint::child(std::uint32_t node, const Key& key) const {
  for (std::uint32_t at = node + 1; at < tree.nodes[node].end;
       at = tree.nodes[at].end)
    if (tree.nodes[at].key == key)
      return at;
  return kNoIndex;
}

}  // namespace postflight
