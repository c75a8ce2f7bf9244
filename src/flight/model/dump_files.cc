#include "flight/model/dump_files.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

namespace postflight {
namespace {

namespace fs = std::filesystem;

class Finder {
 public:
  Result<> add(const std::string& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) {
      if (path.find_first_of("*?[") != path.npos)
        return add_matches(path);
      return fail(ErrorKind::kIo, "{}: {}", path,
                  error ? error.message() : "no such file or folder");
    }
    if (!fs::is_directory(status)) {
      found_.files.push_back(path);
      return {};
    }
    return add_folder(path);
  }

  DumpFiles finish() && {
    std::ranges::sort(found_.files);
    found_.files.erase(std::unique(found_.files.begin(), found_.files.end()),
                       found_.files.end());
    return std::move(found_);
  }

 private:
  Result<> add_matches(const std::string& pattern) {
    glob_t matches = {};
    const int code = glob(pattern.c_str(), GLOB_TILDE, nullptr, &matches);
    const std::vector<std::string> paths(matches.gl_pathv,
                                         matches.gl_pathv + matches.gl_pathc);
    globfree(&matches);
    if (code != 0 || paths.empty())
      return fail(ErrorKind::kIo, "{}: no file matches", pattern);
    for (const std::string& path : paths)
      TRY(add(path));
    return {};
  }

  // The folder that was asked for must be readable; those below it may not be.
  Result<> add_folder(const std::string& root) {
    std::error_code error;
    fs::directory_iterator probe(root, error);
    if (error)
      return fail(ErrorKind::kIo, "{}: {}", root, error.message());
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
                                   "the link leads nowhere",
                                   item->path().string()});
    }
    if (error)
      found_.findings.push_back({"unreadable", Severity::kWarning,
                                 "the folder can't be read: " + error.message(),
                                 folder.string()});
  }

  // Links may lead in circles.
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

}  // namespace postflight
