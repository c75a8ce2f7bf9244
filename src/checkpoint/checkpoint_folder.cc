// Folders: Hugging Face's shards with the index that says which tensor is in
// which file, and the rank files of torch's experimental checkpointer.

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <system_error>

#include "checkpoint/checkpoint.h"
#include "json/json_value.h"

namespace postflight {
namespace {

namespace fs = std::filesystem;

struct Listing {
  std::vector<fs::path> indexes;      // *.index.json
  std::vector<fs::path> safetensors;  // without an index
  std::vector<fs::path> bins;         // pytorch_model*.bin
  std::map<std::uint32_t, fs::path> ranks;
  std::vector<fs::path> metadata;  // .metadata, or one of each rank
};

std::optional<std::uint32_t> rank_of(const std::string& name) {
  constexpr std::string_view kBefore = "checkpoint_";
  constexpr std::string_view kAfter = ".pt";
  if (!name.starts_with(kBefore) || !name.ends_with(kAfter) ||
      name.size() <= kBefore.size() + kAfter.size())
    return std::nullopt;
  std::uint32_t rank = 0;
  const char* const end = name.data() + name.size() - kAfter.size();
  const auto read = std::from_chars(name.data() + kBefore.size(), end, rank);
  return read.ec == std::errc() && read.ptr == end ? std::optional(rank)
                                                   : std::nullopt;
}

// The global one alone, where there is one; else by rank.
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

Result<Listing> list(const fs::path& folder) {
  Listing listing;
  std::error_code error;
  fs::directory_iterator it(folder, error);
  if (error)
    return fail(ErrorKind::kIo, "cannot read folder {}: {}", folder.string(),
                error.message());
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    if (!it->is_regular_file(error))
      continue;
    const std::string name = it->path().filename().string();
    if (const auto rank = rank_of(name))
      listing.ranks.emplace(*rank, it->path());
    else if (name.ends_with(".index.json"))
      listing.indexes.push_back(it->path());
    else if (name.ends_with(".safetensors"))
      listing.safetensors.push_back(it->path());
    else if (name.ends_with(".bin"))
      listing.bins.push_back(it->path());
    else if (name.ends_with(".metadata"))
      listing.metadata.push_back(it->path());
  }
  std::ranges::sort(listing.indexes);
  std::ranges::sort(listing.safetensors);
  std::ranges::sort(listing.bins);
  sort_metadata(listing.metadata);
  return listing;
}

class Shards {
 public:
  Shards(const fs::path& folder, const SourceContext& context)
      : folder_(folder), context_(context), checkpoint_(context.checkpoint) {}

  Result<> add_indexed(const fs::path& index) {
    checkpoint_.files.push_back(TRY(DataFile::open(index, context_.limits)));
    DataFile& data = *checkpoint_.files.back();
    data.builders.push_back(std::make_unique<Builder>());
    Result<Value> parsed = parse_json(data.bytes(), *data.builders.back());
    if (!parsed)
      return tl::unexpected(std::move(parsed.error()).in(index.string()));
    const Value* const map =
        parsed->is(Kind::kDict) ? parsed->find("weight_map") : nullptr;
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
    compare_size(*parsed, index.filename().string());
    return {};
  }

  Result<> add_plain(std::span<const fs::path> files) {
    open_root();
    for (const fs::path& file : files)
      TRY(add_shard(file.filename()));
    checkpoint_.tree.close(root_);
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
    const Result<Format> format = add_file(
        path, {checkpoint_, context_.limits, root_, {}, /*items_only=*/true});
    if (!format)
      checkpoint_.findings.push_back({"unreadable_shard", Severity::kError,
                                      std::string(format.error().message()),
                                      name.string()});
    for (std::uint32_t node = begin; node < checkpoint_.tree.nodes.size();
         node = checkpoint_.tree.nodes[node].end)
      shard_of_.emplace(checkpoint_.tree.nodes[node].key.text, name.string());
    return {};
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
      } else if (found->second != file) {
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

  // The first of many such, and their number.
  struct Findings {
    std::string first;
    std::uint64_t count = 0;

    void add(std::string message) {
      if (count++ == 0)
        first = std::move(message);
    }
    void report(std::string kind, Severity severity, const std::string& where,
                Checkpoint& checkpoint) {
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
  Checkpoint& checkpoint_;
  std::uint32_t root_ = 0;
  std::map<std::string_view, std::string> shard_of_;
  std::set<std::string> missing_;
};

Result<> add_ranks(const Listing& listing, const SourceContext& context) {
  Tree& tree = context.checkpoint.tree;
  const std::uint32_t root =
      tree.add(context.parent, context.key, NodeKind::kDict);
  std::size_t readable = 0;
  for (const auto& [rank, path] : listing.ranks) {
    const Result<Format> format = add_file(
        path, {context.checkpoint, context.limits, root, Key::integer(rank)});
    if (format)
      ++readable;
    else
      context.checkpoint.findings.push_back(
          {"unreadable_rank", Severity::kError,
           std::string(format.error().message()), path.filename().string()});
  }
  tree.close(root);
  if (readable == 0)
    return fail(ErrorKind::kCorrupt, "{}",
                context.checkpoint.findings.back().message);
  return {};
}

}  // namespace

bool stays_inside(const fs::path& name) {
  return !name.empty() && name.is_relative() &&
         std::ranges::none_of(
             name, [](const fs::path& part) { return part == ".."; });
}

Result<Format> add_folder(const fs::path& folder, const OpenOptions& options,
                          const SourceContext& context) {
  const Listing listing = TRY(list(folder));
  if (options.rank) {
    const auto found = listing.ranks.find(*options.rank);
    if (found == listing.ranks.end())
      return fail(
          ErrorKind::kIo, "Checkpoint file not found at {}",
          (folder / fmt::format("checkpoint_{}.pt", *options.rank)).string());
    TRY(add_file(found->second, context));
    return Format::kRanks;
  }
  if (!listing.ranks.empty()) {
    TRY(add_ranks(listing, context));
    return Format::kRanks;
  }
  if (!listing.metadata.empty()) {
    TRY(add_distributed(folder, listing.metadata, context));
    return Format::kDistributed;
  }
  if (TRY(add_sharded_safetensors(listing.safetensors, context)))
    return Format::kDistributed;
  Shards shards(folder, context);
  if (!listing.indexes.empty()) {
    TRY(shards.add_indexed(listing.indexes.front()));
    return Format::kShards;
  }
  if (!listing.safetensors.empty()) {
    TRY(shards.add_plain(listing.safetensors));
    return Format::kShards;
  }
  return fail(
      ErrorKind::kCorrupt,
      "{} holds no checkpoint: neither .metadata nor checkpoint_0.pt nor "
      "safetensors nor an index of shards",
      folder.string());
}

}  // namespace postflight
