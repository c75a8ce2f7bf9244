#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/model/contents.h"

namespace postflight {

// A file that is one rank's, by its name: model_world_size_8_rank_3.pt,
// mp_rank_00/model_optim_rng.pt, zero_pp_rank_0_mp_rank_00_optim_states.pt.
struct RankFile {
  std::filesystem::path path;
  // The rank; the numbers as written ("00_001") if the names differ in several.
  std::optional<std::uint32_t> rank;
  std::string numbers;
  // What is left of the name: "model", "optim_states". A rank has one of each.
  std::string part;
};

struct RankFiles {
  std::vector<RankFile> files;  // by rank, then part
  bool several_parts = false;
  std::optional<std::uint32_t> world_size;  // if names state it

  bool empty() const { return files.empty(); }
  // The files of one rank.
  std::vector<const RankFile*> of(std::uint32_t rank) const;
};

// Which of a folder's files and sub-folders have a rank in their names.
RankFiles find_rank_files(std::span<const std::filesystem::path> files,
                          std::span<const std::filesystem::path> folders);

// The files of each rank below its number; with several parts, below the name
// of the part. Ranks that must exist and have no file are findings.
Result<> add_rank_files(const RankFiles& found, const SourceContext& context);

}  // namespace postflight
