// Folders: Hugging Face's shards, with an index of which tensor is in which
// file, and the rank files of torch's experimental checkpointer.

#include "checkpoint/folder.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <system_error>
#include <utility>

#include "checkpoint/joining/rank_tree.h"
#include "checkpoint/joining/zero_tree.h"
#include "json/json_value.h"

namespace postflight {
namespace {

namespace fs = std::filesystem;

// The decimal number between `before` and `after`.
std::optional<std::uint32_t> number_in(std::string_view name,
                                       std::string_view before,
                                       std::string_view after) {
  if (!name.starts_with(before) || !name.ends_with(after) ||
      name.size() <= before.size() + after.size())
    return std::nullopt;
  std::uint32_t number = 0;
  const char* const end = name.data() + name.size() - after.size();
  const auto read = std::from_chars(name.data() + before.size(), end, number);
  return read.ec == std::errc() && read.ptr == end ? std::optional(number)
                                                   : std::nullopt;
}

bool is_metadata(std::string_view name) {
  return name == ".metadata" || number_in(name, "__", ".metadata");
}

// Only the global one, if there is one; otherwise by rank.
void sort_metadata(std::vector<fs::path>& files) {
  const auto global = std::ranges::find(
      files, ".metadata",
      [](const fs::path& file) { return file.filename().string(); });
  if (global != files.end()) {
    files = {*global};
    return;
  }
  std::ranges::sort(files, {}, [](const fs::path& file) {
    const std::string name = file.filename().string();
    return std::pair(name.size(), name);
  });
}

// Adds a file of a folder. The truncation of the checkpoint is that of its
// first truncated file, with the file's name.
Result<Format> add_one_of(const fs::path& path, const SourceContext& context) {
  std::string& truncation = context.checkpoint.truncation;
  std::string before = std::exchange(truncation, {});
  Result<Format> format = context.add_file(path, context);
  if (!before.empty())
    truncation = std::move(before);
  else if (!truncation.empty())
    truncation = fmt::format("{}: {}", path.filename().string(), truncation);
  return format;
}

class Shards {
 public:
  Shards(const fs::path& folder, const SourceContext& context)
      : folder_(folder), context_(context), checkpoint_(context.checkpoint) {}

  Result<> add_indexed(const fs::path& index, const FolderListing& listing) {
    checkpoint_.add(TRY(DataFile::open(index, context_.limits())));
    DataFile& data = *checkpoint_.files.back();
    data.builders.push_back(std::make_unique<Builder>());
    const Value parsed =
        TRY(parse_json(data.bytes(), *data.builders.back()).in(index.string()));
    const Value* const map =
        parsed.is(Kind::kDict) ? parsed.find("weight_map") : nullptr;
    if (map == nullptr || !map->is(Kind::kDict))
      return fail(ErrorKind::kCorrupt, "{}: it has no weight_map",
                  index.string());
    std::set<std::string_view> files;
    std::map<std::string_view, std::string_view> wanted;
    for (const Pair& pair : map->pairs()) {
      if (!pair.value.is(Kind::kString))
        return fail(ErrorKind::kCorrupt, "{}: '{}' is in no file",
                    index.string(), pair.key.text());
      wanted[pair.key.text()] = pair.value.text();
      files.insert(pair.value.text());
    }
    open_root();
    for (const std::string_view file : files)
      TRY(add_shard(fs::path(file)));
    checkpoint_.tree.close(root_);
    compare(wanted, index.filename().string());
    report_twice(Severity::kWarning);
    if (listing.indexes.size() == 1)
      compare_files(files, listing);
    compare_size(parsed, index.filename().string());
    return {};
  }

  Result<> add_plain(std::span<const fs::path> files) {
    open_root();
    for (const fs::path& file : files)
      TRY(add_shard(file.filename()));
    checkpoint_.tree.close(root_);
    report_twice(Severity::kError);
    return {};
  }

 private:
  void open_root() {
    root_ =
        checkpoint_.tree.add(context_.parent, context_.key, NodeKind::kDict);
  }

  Result<> add_shard(const fs::path& name) {
    if (!stays_inside(name))
      return fail(ErrorKind::kRefused,
                  "the index names {}, which is outside its folder",
                  name.string());
    const auto begin =
        static_cast<std::uint32_t>(checkpoint_.tree.nodes.size());
    const fs::path path = folder_ / name;
    std::error_code error;
    if (!fs::exists(path, error)) {
      missing_.insert(name.string());
      checkpoint_.findings.push_back(
          {"missing_shard", Severity::kError,
           fmt::format("the index names {}, which is not in the folder",
                       name.string()),
           name.string()});
      return {};
    }
    const Result<Format> format = add_one_of(path, context_.items_at(root_));
    if (!format)
      checkpoint_.findings.push_back({"unreadable_shard", Severity::kError,
                                      std::string(format.error().message()),
                                      name.string()});
    for (std::uint32_t node = begin; node < checkpoint_.tree.nodes.size();
         node = checkpoint_.tree.nodes[node].end) {
      const Key& key = checkpoint_.tree.nodes[node].key;
      const auto [at, fresh] = shard_of_.emplace(key.text, name.string());
      if (!fresh && key.kind == Key::Kind::kString && at->second != name)
        also_in_.emplace(key.text, name.string());
    }
    return {};
  }

  // Without an index it is ambiguous which of them is meant.
  void report_twice(Severity severity) {
    Findings twice;
    for (const auto& [tensor, file] : also_in_)
      twice.add(fmt::format("tensor '{}' is in both {} and {}", tensor,
                            shard_of_.at(tensor), file));
    twice.report("duplicate_tensor", severity,
                 also_in_.empty() ? "" : also_in_.begin()->second, checkpoint_);
  }

  bool is_also_in(std::string_view tensor, std::string_view file) const {
    const auto [begin, end] = also_in_.equal_range(tensor);
    return std::any_of(
        begin, end, [file](const auto& pair) { return pair.second == file; });
  }

  // Shards of the kind that the index names which loaders would skip.
  void compare_files(const std::set<std::string_view>& named,
                     const FolderListing& listing) {
    Findings unnamed;
    std::string where;
    const auto look = [&](std::span<const fs::path> files,
                          std::string_view start, std::string_view ending) {
      if (std::ranges::none_of(named, [ending](std::string_view name) {
            return name.ends_with(ending);
          }))
        return;
      for (const fs::path& file : files) {
        const std::string name = file.filename().string();
        if (!name.starts_with(start) || named.contains(name))
          continue;
        unnamed.add("the index does not name it, so loaders skip it");
        if (unnamed.count == 1)
          where = name;
      }
    };
    look(listing.safetensors, "", ".safetensors");
    look(listing.bins, "pytorch_model", ".bin");
    unnamed.report("unnamed_shard", Severity::kWarning, where, checkpoint_);
  }

  void compare(const std::map<std::string_view, std::string_view>& wanted,
               const std::string& index) {
    Findings lost;
    for (const auto& [tensor, file] : wanted) {
      const auto found = shard_of_.find(tensor);
      if (found == shard_of_.end()) {
        if (!missing_.contains(std::string(file)))
          lost.add(fmt::format("tensor '{}' should be in {} and is not", tensor,
                               file));
      } else if (found->second != file && !is_also_in(tensor, file)) {
        lost.add(fmt::format("tensor '{}' should be in {} but is in {}", tensor,
                             file, found->second));
      }
    }
    lost.report("index_mismatch", Severity::kError, index, checkpoint_);
    Findings extra;
    for (const auto& [tensor, file] : shard_of_)
      if (!wanted.contains(tensor))
        extra.add(
            fmt::format("tensor '{}' of {} is not in the index", tensor, file));
    extra.report("index_incomplete", Severity::kWarning, index, checkpoint_);
  }

  // The first of many similar findings, and their number.
  struct Findings {
    std::string first;
    std::uint64_t count = 0;

    void add(std::string message) {
      if (count++ == 0)
        first = std::move(message);
    }
    void report(std::string kind, Severity severity, const std::string& where,
                CheckpointContents& checkpoint) {
      if (count > 1)
        first += fmt::format(" (and {} more such)", count - 1);
      if (count > 0)
        checkpoint.findings.push_back(
            {std::move(kind), severity, first, where});
    }
  };

  void compare_size(const Value& index, const std::string& where) {
    const Value* const metadata = index.find("metadata");
    if (metadata == nullptr || !metadata->is(Kind::kDict))
      return;
    const Value* const stated = metadata->find("total_size");
    if (stated == nullptr || !stated->is(Kind::kInteger))
      return;
    std::uint64_t total = 0;
    for (const Tensor& tensor : checkpoint_.tree.tensors)
      total += tensor.bytes();
    if (missing_.empty() &&
        static_cast<std::uint64_t>(stated->integer()) != total)
      checkpoint_.findings.push_back(
          {"index_size", Severity::kWarning,
           fmt::format("the index says {} bytes, the tensors have {}",
                       stated->integer(), total),
           where});
  }

  const fs::path& folder_;
  const SourceContext& context_;
  CheckpointContents& checkpoint_;
  std::uint32_t root_ = 0;
  std::map<std::string_view, std::string> shard_of_;
  std::multimap<std::string_view, std::string>
      also_in_;  // the other shards with it
  std::set<std::string> missing_;
};

}  // namespace

Result<FolderListing> list_folder(const fs::path& folder) {
  FolderListing listing;
  listing.folder = folder;
  std::error_code error;
  fs::directory_iterator it(folder, error);
  if (error)
    return fail(ErrorKind::kIo, "cannot read folder {}: {}", folder.string(),
                error.message());
  std::vector<fs::path> files;
  std::vector<fs::path> folders;
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    std::error_code none;
    if (it->is_directory(none))
      folders.push_back(it->path());
    if (!it->is_regular_file(error))
      continue;
    files.push_back(it->path());
    const std::string name = it->path().filename().string();
    if (const auto rank = rank_of_file(name))
      listing.ranks.emplace(*rank, it->path());
    else if (number_in(name, "checkpoint_", ".pt"))
      listing.odd_ranks.push_back(it->path());
    else if (name.ends_with(".index.json"))
      listing.indexes.push_back(it->path());
    else if (name.ends_with(".safetensors"))
      listing.safetensors.push_back(it->path());
    else if (name.ends_with(".bin"))
      listing.bins.push_back(it->path());
    else if (is_metadata(name))
      listing.metadata.push_back(it->path());
  }
  std::ranges::sort(listing.indexes);
  std::ranges::sort(listing.safetensors);
  std::ranges::sort(listing.bins);
  std::ranges::sort(listing.odd_ranks);
  sort_metadata(listing.metadata);
  listing.universal = listing.metadata.empty() && is_universal(folder);
  if (listing.ranks.empty() && listing.metadata.empty() &&
      listing.indexes.empty())
    listing.other_ranks = find_rank_files(files, folders);
  return listing;
}

namespace {

// One tree out of those of all ranks, where they say how.
Result<Format> join(CheckpointContents& checkpoint) {
  if (has_zero_partitions(checkpoint.tree)) {
    TRY(join_zero(checkpoint));
    return checkpoint.joins_ranks ? Format::kZero : Format::kRanks;
  }
  if (checkpoint.joining.always || has_sharded_tensors(checkpoint.tree))
    TRY(join_ranks(checkpoint));
  return Format::kRanks;
}

// Gaps between the ranks of checkpoint_0.pt, checkpoint_1.pt, ...
void report_gaps(const FolderListing& listing, const SourceContext& context) {
  std::uint32_t expected = 0;
  for (const auto& [rank, path] : listing.ranks) {
    for (; expected < rank && context.checkpoint.findings.size() < 1000;
         ++expected)
      context.checkpoint.report(
          "missing_rank", Severity::kError,
          fmt::format("rank {} has no file, though rank {} has one", expected,
                      rank),
          rank_file_name(expected));
    expected = rank + 1;
  }
}

}  // namespace

Result<Format> add_ranks(const FolderListing& listing,
                         const SourceContext& context) {
  if (listing.ranks.empty()) {
    TRY(add_rank_files(listing.other_ranks, context));
    return join(context.checkpoint);
  }
  Tree& tree = context.checkpoint.tree;
  const std::uint32_t root =
      tree.add(context.parent, context.key, NodeKind::kDict);
  std::size_t readable = 0;
  for (const auto& [rank, path] : listing.ranks) {
    const Result<Format> format =
        add_one_of(path, context.at(root, Key::integer(rank)));
    if (format)
      ++readable;
    else
      context.checkpoint.findings.push_back(
          {"unreadable_rank", Severity::kError,
           std::string(format.error().message()), path.filename().string()});
  }
  tree.close(root);
  if (readable > 0)
    for (const fs::path& path : listing.odd_ranks)
      context.checkpoint.findings.push_back(
          {"odd_rank_file", Severity::kWarning,
           "torch does not recognise it as a rank's file, as its number is not "
           "written as torch writes it",
           path.filename().string()});
  if (readable == 0)
    return fail(ErrorKind::kCorrupt, "{}",
                context.checkpoint.findings.back().message);
  const Format format = TRY(join(context.checkpoint));
  if (context.checkpoint.joins_ranks)
    report_gaps(listing, context);
  return format;
}

Result<> add_shards(const FolderListing& listing,
                    const SourceContext& context) {
  Shards shards(listing.folder, context);
  return listing.indexes.empty()
             ? shards.add_plain(listing.safetensors)
             : shards.add_indexed(listing.indexes.front(), listing);
}

}  // namespace postflight
