#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

#include "checkpoint/model/contents.h"
#include "checkpoint/rank_files.h"

namespace postflight {

// The files of a folder that may belong to a checkpoint, by name. Each list is
// sorted.
struct FolderListing {
  std::filesystem::path folder;
  std::vector<std::filesystem::path> indexes;      // *.index.json
  std::vector<std::filesystem::path> safetensors;  // *.safetensors
  std::vector<std::filesystem::path> bins;         // *.bin
  std::map<std::uint32_t, std::filesystem::path> ranks;
  std::vector<std::filesystem::path> odd_ranks;  // checkpoint_01.pt
  bool universal = false;  // a folder of DeepSpeed's parameters
  RankFiles other_ranks;   // with other names, if there are no `ranks`
  // The global .metadata alone, if there is one; otherwise those of the ranks.
  std::vector<std::filesystem::path> metadata;
};

Result<FolderListing> list_folder(const std::filesystem::path& folder);

// The files of ranks: one tree, if they say how they belong together, otherwise
// one below the other. kRanks or kZero.
Result<Format> add_ranks(const FolderListing& listing,
                         const SourceContext& context);

// Hugging Face's shards, with an index that says which tensor is in which file,
// or safetensors files without one.
Result<> add_shards(const FolderListing& listing, const SourceContext& context);

}  // namespace postflight
