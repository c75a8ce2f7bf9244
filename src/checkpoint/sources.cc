// The formats of checkpoints. To add one, write a file with a function that
// recognises it and one that fills CheckpointContents, and add a row here.

#include "checkpoint/sources.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <system_error>
#include <utility>

#include "checkpoint/dcp/folder.h"
#include "checkpoint/gguf/gguf.h"
#include "checkpoint/joining/zero_tree.h"
#include "checkpoint/model/checkpoint.h"
#include "checkpoint/model/quotes.h"
#include "checkpoint/numpy/arrays.h"
#include "checkpoint/safetensors/safetensors.h"
#include "checkpoint/torch/sources.h"

namespace postflight {
namespace {

using enum Format;

// A format that the source of another row recognises.
constexpr FormatSource found_by_another(Format format, std::string_view name,
                                        std::string_view title) {
  return {format, name, title, nullptr, nullptr};
}

// Tried from the top: archives begin with a signature, while any bytes may be
// a pickle of protocol 0.
constexpr std::array kSources = {
    FormatSource{kNumpy, "numpy", "NumPy arrays",
                 [](const Candidate& from, const Limits&) {
                   return is_numpy(from.bytes);
                 },
                 [](const Candidate& from,
                    const SourceContext& context) -> Result<Format> {
                   TRY(add_numpy(from.file, context));
                   return kNumpy;
                 }},
    FormatSource{kTorchZip, "torch_zip", "torch.save archive",
                 [](const Candidate& from, const Limits&) {
                   return is_torch_zip(from.bytes);
                 },
                 [](const Candidate& from, const SourceContext& context) {
                   return add_torch_zip(from.file, context);
                 }},
    found_by_another(kTorchScript, "torchscript", "TorchScript archive"),
    found_by_another(kTorchPackage, "torch_package", "torch.package archive"),
    found_by_another(kExported, "pt2", "exported program (.pt2)"),
    FormatSource{kLegacy, "torch_legacy", "torch.save stream from before 1.6",
                 [](const Candidate& from, const Limits& limits) {
                   return is_legacy_stream(from.bytes, limits);
                 },
                 [](const Candidate& from,
                    const SourceContext& context) -> Result<Format> {
                   TRY(add_legacy_stream(from.file, context));
                   return kLegacy;
                 }},
    FormatSource{
        kTar, "torch_tar", "torch.save tar from before 0.1.10",
        [](const Candidate& from, const Limits&) { return is_tar(from.bytes); },
        [](const Candidate& from,
           const SourceContext& context) -> Result<Format> {
          TRY(add_tar(from.file, context));
          return kTar;
        }},
    FormatSource{kSafetensors, "safetensors", "safetensors file",
                 [](const Candidate& from, const Limits&) {
                   return from.is_file() &&
                          (is_safetensors(from.bytes) ||
                           from.path.extension() == ".safetensors");
                 },
                 [](const Candidate& from,
                    const SourceContext& context) -> Result<Format> {
                   TRY(add_safetensors(from.file, context));
                   return kSafetensors;
                 }},
    FormatSource{kGguf, "gguf", "GGUF file",
                 [](const Candidate& from, const Limits&) {
                   return from.is_file() && is_gguf(from.bytes);
                 },
                 [](const Candidate& from,
                    const SourceContext& context) -> Result<Format> {
                   TRY(add_gguf(from.file, context));
                   return kGguf;
                 }},
    FormatSource{kShards, "shards", "sharded folder",
                 [](const Candidate& from, const Limits& limits) {
                   return !from.is_file() && from.folder->ranks.empty() &&
                          from.folder->other_ranks.empty() &&
                          from.folder->metadata.empty() &&
                          (!from.folder->indexes.empty() ||
                           !from.folder->safetensors.empty()) &&
                          !from.folder->universal &&
                          !are_parts(from.folder->safetensors, limits);
                 },
                 [](const Candidate& from,
                    const SourceContext& context) -> Result<Format> {
                   TRY(add_shards(*from.folder, context));
                   return kShards;
                 }},
    FormatSource{kRanks, "ranks", "folder of rank files",
                 [](const Candidate& from, const Limits&) {
                   return !from.is_file() && !from.folder->universal &&
                          (!from.folder->ranks.empty() ||
                           !from.folder->other_ranks.empty());
                 },
                 [](const Candidate& from, const SourceContext& context) {
                   return add_ranks(*from.folder, context);
                 }},
    FormatSource{kZero, "deepspeed", "DeepSpeed checkpoint",
                 [](const Candidate& from, const Limits&) {
                   return !from.is_file() && from.folder->universal;
                 },
                 [](const Candidate& from,
                    const SourceContext& context) -> Result<Format> {
                   TRY(add_universal(from.path, context));
                   return kZero;
                 }},
    FormatSource{
        kDistributed, "dcp", "distributed checkpoint",
        [](const Candidate& from, const Limits&) {
          return !from.is_file() && (!from.folder->metadata.empty() ||
                                     !from.folder->safetensors.empty());
        },
        [](const Candidate& from,
           const SourceContext& context) -> Result<Format> {
          if (from.folder->metadata.empty())
            TRY(add_parts(from.folder->safetensors, context));
          else
            TRY(add_distributed(from.path, from.folder->metadata, context));
          return kDistributed;
        }},
    FormatSource{
        kPickle, "pickle", "bare pickle",
        [](const Candidate& from, const Limits&) { return from.is_file(); },
        [](const Candidate& from,
           const SourceContext& context) -> Result<Format> {
          TRY(add_bare_pickle(from.file, context));
          return kPickle;
        }},
};

static_assert(
    [] {
      for (std::size_t i = 0; i < kSources.size(); ++i)
        if (kSources[i].format != static_cast<Format>(i))
          return false;
      return true;
    }(),
    "the rows are in the order of Format");

const FormatSource& source_of(Format format) {
  return kSources[static_cast<std::size_t>(format)];
}

// DeepSpeed and Megatron write into the folder of a run which of its folders is
// the newest.
std::string hint_at_latest(const std::filesystem::path& folder) {
  std::ifstream file(folder / "latest");
  std::string name;
  std::error_code error;
  if (!std::getline(file, name) || !stays_inside(name) ||
      !std::filesystem::is_directory(folder / name, error))
    return {};
  return fmt::format("; its file 'latest' names {}", (folder / name).string());
}

Result<Format> add_candidate(const Candidate& candidate,
                             const SourceContext& context) {
  for (const FormatSource& source : kSources)
    if (source.recognises != nullptr &&
        source.recognises(candidate, context.limits()))
      return source.add(candidate, context);
  return fail(ErrorKind::kCorrupt,
              "{} holds no checkpoint: neither .metadata nor files of ranks "
              "nor safetensors nor an index of shards{}",
              candidate.path.string(), hint_at_latest(candidate.path));
}

Result<Format> add_opened(std::unique_ptr<DataFile> file,
                          const SourceContext& context) {
  const std::uint32_t index = context.checkpoint.add(std::move(file));
  const DataFile& data = *context.checkpoint.files[index];
  if (data.bytes().empty())
    return fail(ErrorKind::kCorrupt,
                "the file is empty; was its writer killed?");
  if (data.path().filename().string().ends_with(".index.json"))
    return fail(ErrorKind::kUsage,
                "this is the list of a sharded checkpoint's files; name their "
                "folder instead");
  if (as_text(data.bytes()).starts_with("PFDELTA1"))
    return fail(ErrorKind::kUsage,
                "this is a delta, which holds a part of a checkpoint; "
                "postflight ckpt apply BASE {} OUT makes the whole",
                data.path().string());
  return add_candidate(
      {.path = data.path(), .file = index, .bytes = data.bytes()}, context);
}

Result<Format> add_folder(const std::filesystem::path& path,
                          const std::optional<std::uint32_t>& rank,
                          const SourceContext& context) {
  const FolderListing listing = TRY(list_folder(path));
  if (!rank)
    return add_candidate({.path = path, .folder = &listing}, context);
  if (!listing.other_ranks.empty()) {
    const auto its = listing.other_ranks.of(*rank);
    if (its.empty())
      return fail(ErrorKind::kIo, "no file of rank {} is in {}", *rank,
                  path.string());
    if (its.size() > 1)
      return fail(ErrorKind::kUsage,
                  "rank {} has several files in {}; name one of them", *rank,
                  path.string());
    TRY(add_file(its.front()->path, context));
    return kRanks;
  }
  const auto found = listing.ranks.find(*rank);
  if (found == listing.ranks.end())
    return fail(ErrorKind::kIo, "Checkpoint file not found at {}",
                (path / rank_file_name(*rank)).string());
  TRY(add_file(found->second, context));
  return kRanks;
}

std::unique_ptr<CheckpointContents> contents_for(
    const std::filesystem::path& path, OpenOptions options) {
  auto contents = std::make_unique<CheckpointContents>();
  contents->path = path;
  contents->context = options.context;
  contents->joining = std::move(options.joining);
  contents->extensions = std::move(options.extensions);
  if (options.key)
    contents->key.emplace(*std::move(options.key));
  return contents;
}

Result<Checkpoint> finish(std::unique_ptr<CheckpointContents> contents,
                          Result<Format> format) {
  // Parts that were truncated meanwhile have been read as zeros.
  for (const std::unique_ptr<DataFile>& file : contents->files)
    if (file->shrank())
      return fail(ErrorKind::kIo,
                  "{}: it became shorter while it was read; is it still being "
                  "written?",
                  file->path().string());
  contents->format = TRY(std::move(format));
  set_quotes(contents->tree);
  return Checkpoint(std::move(contents));
}

}  // namespace

std::span<const FormatSource> format_sources() {
  return kSources;
}

std::string_view format_title(Format format) {
  return source_of(format).title;
}

std::string_view format_name(Format format) {
  return source_of(format).name;
}

Result<Format> add_file(const std::filesystem::path& path,
                        const SourceContext& context) {
  std::unique_ptr<DataFile> file = TRY(DataFile::open(
      path, context.limits(),
      context.checkpoint.files.size() < DataFile::kMostKeptOpen));
  return add_opened(std::move(file), context).in(path.string());
}

Result<Checkpoint> Checkpoint::open(const std::filesystem::path& path,
                                    OpenOptions options) {
  const std::optional<std::uint32_t> rank = options.rank;
  std::unique_ptr<CheckpointContents> contents =
      contents_for(path, std::move(options));
  const SourceContext context{*contents, add_file};
  std::error_code error;
  Result<Format> format = std::filesystem::is_directory(path, error)
                              ? add_folder(path, rank, context)
                              : add_file(path, context);
  return finish(std::move(contents), std::move(format));
}

Result<Checkpoint> Checkpoint::open(Bytes bytes,
                                    const std::filesystem::path& name,
                                    OpenOptions options) {
  std::unique_ptr<CheckpointContents> contents =
      contents_for(name, std::move(options));
  const SourceContext context{*contents, add_file};
  Result<Format> format =
      add_opened(DataFile::over(bytes, name, context.limits()), context)
          .in(name.string());
  return finish(std::move(contents), std::move(format));
}

}  // namespace postflight
