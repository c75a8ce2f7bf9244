#include "flight/model/dump_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/glob.h"

namespace postflight {
namespace {

namespace fs = std::filesystem;

class Finder {
 public:
  Result<> add(const std::string& given) {
    const std::vector<std::string> paths = TRY(expand_path(given));
    for (const std::string& path : paths) {
      std::error_code ignored;
      if (fs::is_directory(path, ignored))
        TRY(add_folder(path));
      else
        found_.files.push_back(path);
    }
    return {};
  }

  DumpFiles finish() && {
    std::ranges::sort(found_.files);
    found_.files.erase(std::unique(found_.files.begin(), found_.files.end()),
                       found_.files.end());
    return std::move(found_);
  }

 private:
  // The folder itself must be readable; those below it need not be.
  Result<> add_folder(const std::string& root) {
    std::error_code error;
    fs::directory_iterator probe(root, error);
    if (error)
      return fail(ErrorKind::kIo, "{}: {}", root,
                  permission_advice(root).value_or(error.message()));
    std::vector<fs::path> folders = {root};
    while (!folders.empty()) {
      const fs::path folder = std::move(folders.back());
      folders.pop_back();
      if (is_new(folder))
        list(folder, folders);
    }
    return {};
  }

  void list(const fs::path& folder, std::vector<fs::path>& folders) {
    std::error_code error;
    fs::directory_iterator item(folder, error);
    for (; !error && item != fs::directory_iterator(); item.increment(error)) {
      std::error_code ignored;
      const fs::file_status status = item->status(ignored);
      if (fs::is_directory(status))
        folders.push_back(item->path());
      else if (fs::is_regular_file(status))
        found_.files.push_back(item->path());
      else if (item->is_symlink(ignored))
        found_.findings.push_back({"unreadable", Severity::kWarning,
                                   "broken symbolic link",
                                   item->path().string()});
    }
    if (error)
      found_.findings.push_back(
          {"unreadable", Severity::kWarning,
           "cannot read the folder: " +
               permission_advice(folder).value_or(error.message()),
           folder.string()});
  }

  // Symbolic links can form cycles.
  bool is_new(const fs::path& folder) {
    struct stat info = {};
    return stat(folder.c_str(), &info) != 0 ||
           seen_.emplace(info.st_dev, info.st_ino).second;
  }

  DumpFiles found_;
  std::set<std::pair<dev_t, ino_t>> seen_;
};

}  // namespace

Result<DumpFiles> find_dump_files(std::span<const std::string> paths) {
  Finder finder;
  for (const std::string& path : paths)
    TRY(finder.add(path));
  return std::move(finder).finish();
}

std::vector<std::string> default_dump_prefixes(const Environment& environment) {
  std::vector<std::string> prefixes;
  const auto add = [&](std::string prefix) {
    if (!prefix.empty() &&
        std::ranges::find(prefixes, prefix) == prefixes.end())
      prefixes.push_back(std::move(prefix));
  };
  for (const char* const name :
       {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
        "TORCHCOMM_FR_DUMP_TEMP_FILE"})
    add(environment(name).value_or(""));
  const std::string home = environment("HOME").value_or("");
  const std::string cache = environment("XDG_CACHE_HOME").value_or("");
  if (!cache.empty())
    add(cache + "/torch/comm_lib_trace_rank_");
  add(home.empty() ? "/tmp/comm_lib_trace_rank_"
                   : home + "/.cache/torch/comm_lib_trace_rank_");
  add("/tmp/nccl_trace_rank_");
  if (!home.empty())
    add(home + "/.cache/torchcomm_fr_trace_");
  add("/tmp/hccl_trace_rank_");
  return prefixes;
}

}  // namespace postflight
