#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "checkpoint/folder.h"
#include "checkpoint/model/contents.h"

namespace postflight {

// What is being opened: a file of the checkpoint, or a folder.
struct Candidate {
  const std::filesystem::path& path;
  std::uint32_t file = kNoIndex;          // among the checkpoint's files
  Bytes bytes = {};                       // of the file
  const FolderListing* folder = nullptr;  // null for a file

  bool is_file() const { return folder == nullptr; }
};

// A format: how it is called, how it is recognised, and what adds it to a
// checkpoint. The first row that recognises a candidate opens it. Formats that
// are recognised only while another one is read (TorchScript is also a zip
// archive of torch) have neither function.
struct FormatSource {
  Format format;
  std::string_view name;   // stable, for programs
  std::string_view title;  // for people
  bool (*recognises)(const Candidate& candidate, const Limits& limits);
  Result<Format> (*add)(const Candidate& candidate,
                        const SourceContext& context);
};

// In the order of Format.
std::span<const FormatSource> format_sources();

// Opens a file of any format and adds its tree.
Result<Format> add_file(const std::filesystem::path& path,
                        const SourceContext& context);

}  // namespace postflight
