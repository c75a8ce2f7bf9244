#pragma once

// What a file is that was given to the wrong command.

#include <filesystem>
#include <optional>
#include <string_view>

namespace postflight {

struct FileKind {
  std::string_view what;     // "a checkpoint"
  std::string_view command;  // that reads it: "postflight ckpt ls"; or empty
  std::string_view homes;    // the commands it may be given to, with a space
                             // before and after each
};

// Judges a regular file by its first bytes, and a folder by its names and a few
// files in it; nothing for other things and unknown files. Never blocks.
std::optional<FileKind> file_kind(const std::filesystem::path& path);

}  // namespace postflight
