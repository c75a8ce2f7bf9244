#include "api/file_kind.h"

#include <algorithm>
#include <array>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/descriptor.h"

namespace postflight {
namespace {

constexpr FileKind kDump = {"a flight-recorder dump", "postflight trace",
                            " trace entries fr-trace doctor pickle "};
constexpr FileKind kDumps = {"a folder of flight-recorder dumps",
                             "postflight trace",
                             " trace entries fr-trace doctor "};
constexpr FileKind kCheckpoint = {"a checkpoint", "postflight ckpt ls",
                                  " ckpt pickle "};
constexpr FileKind kPickle = {"a pickle", "postflight pickle",
                              " pickle ckpt trace entries fr-trace "};
constexpr FileKind kProfile = {"a profile", "postflight profile report",
                               " profile "};
constexpr FileKind kStacks = {"the stacks of a process", "postflight stacks",
                              " stacks "};
constexpr FileKind kAnswer = {
    "an answer of postflight --json, for other programs", "", " "};
constexpr FileKind kDatabase = {"an SQLite database", "sqlite3", " "};
constexpr FileKind kGzip = {"compressed with gzip", "gunzip -k",
                            " trace entries fr-trace pickle stream "};
constexpr FileKind kZstd = {"compressed with zstd", "unzstd",
                            " trace entries fr-trace pickle stream "};
constexpr FileKind kXz = {"compressed with xz", "unxz -k", " stream "};

using namespace std::literals;

std::string front_of(const std::filesystem::path& path) {
  constexpr std::size_t kFront = 64 << 10;
  std::string front(kFront, '\0');
  const Descriptor file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  const ssize_t size =
      file.is_open() ? ::read(file.number(), front.data(), front.size()) : 0;
  front.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return front;
}

bool has(std::string_view front, std::string_view text) {
  return front.find(text) != front.npos;
}

bool is_dump(std::string_view front) {
  return has(front, "pg_config") ||
         (has(front, "profiling_name") && has(front, "entries"));
}

bool is_safetensors(std::string_view front) {
  constexpr std::uint64_t kMostHeader = 100'000'000;  // safetensors' own cap
  return front.size() > 10 && front.substr(8, 2) == "{\"" &&
         load_little_endian<std::uint64_t>(as_bytes(front).data()) <
             kMostHeader;
}

std::optional<FileKind> kind_of_json(std::string_view front) {
  if (has(front, "\"postflight.stacks/"))
    return kStacks;
  if (has(front, "\"postflight."))
    return kAnswer;
  if (is_dump(front))
    return kDump;
  if (has(front, "\"frames\"") && has(front, "\"thread_name\""))
    return kStacks;
  return std::nullopt;
}

std::optional<FileKind> kind_of_front(std::string_view front) {
  constexpr std::array kMagic = {std::pair("PFPROF"sv, kProfile),
                                 std::pair("SQLite format 3"sv, kDatabase),
                                 std::pair("PK\3\4"sv, kCheckpoint),
                                 std::pair("\x1f\x8b"sv, kGzip),
                                 std::pair("\x28\xb5\x2f\xfd"sv, kZstd),
                                 std::pair("\xfd"
                                           "7zXZ"sv,
                                           kXz)};
  for (const auto& [magic, kind] : kMagic)
    if (front.starts_with(magic))
      return kind;
  if (is_safetensors(front))
    return kCheckpoint;
  const std::size_t begin = front.find_first_not_of(" \t\r\n");
  if (begin != front.npos && (front[begin] == '{' || front[begin] == '['))
    return kind_of_json(front);
  if (front.size() > 1 && front[0] == '\x80' && front[1] >= 2 && front[1] <= 5)
    return is_dump(front) ? kDump
           // The magic number of torch's legacy format, as a pickle.
           : has(front.substr(0, 20),
                 "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19")
               ? kCheckpoint
               : kPickle;
  if (has(front, "(most recent call first)") || has(front, "=== Rank ") ||
      (front.starts_with("Process ") && has(front, "\nPython v")))
    return kStacks;
  return std::nullopt;
}

std::optional<FileKind> kind_of_folder(const std::filesystem::path& path) {
  constexpr int kMostFiles = 20;
  int files = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error);
       !error && entry != std::filesystem::directory_iterator() &&
       files < kMostFiles;
       entry.increment(error)) {
    std::error_code unknown;
    if (!entry->is_regular_file(unknown))
      continue;
    ++files;
    const std::filesystem::path& file = entry->path();
    if (file.filename() == ".metadata" || file.extension() == ".distcp" ||
        file.extension() == ".safetensors" || file.extension() == ".pt")
      return kCheckpoint;
    const std::optional<FileKind> kind = kind_of_front(front_of(file));
    if (kind && kind->what == kDump.what)
      return kDumps;
  }
  return std::nullopt;
}

}  // namespace

std::optional<FileKind> file_kind(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status =
      std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status))
    return kind_of_folder(path);
  if (!std::filesystem::is_regular_file(status))
    return std::nullopt;
  return kind_of_front(front_of(path));
}

}  // namespace postflight
