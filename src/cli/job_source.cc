#include "cli/job_source.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>

#include "api/trace.h"
#include "base/environment.h"
#include "base/escape.h"
#include "base/file.h"

namespace postflight {

void add_job_source(CommandArguments& arguments, JobSource& source) {
  arguments.positional(
      "DIR", source.paths,
      "Folders, files, tar archives or globs: the dumps of one "
      "job; - is standard input");
  arguments.option("-p,--prefix", source.prefix, "TEXT",
                   "The text before the rank in the names of the dumps");
  arguments.option("--rank-pattern", source.rank_pattern, "REGEX",
                   "Regular expression whose first group is the rank in a "
                   "file name");
  arguments.threads("N", "How many threads to use (one per processor)");
}

Result<std::vector<std::string>> dump_paths(const JobSource& source) {
  if (source.paths.empty())
    return default_dumps(process_environment());
  std::vector<std::string> paths;
  std::ranges::transform(
      source.paths, std::back_inserter(paths),
      [](const std::string& path) { return input_path(path).native(); });
  return paths;
}

namespace {

// How many files and folders a folder has whose names start so. Dumps are
// looked for in folders below, too.
std::size_t files_with_prefix(const std::filesystem::path& folder,
                              std::string_view prefix) {
  std::size_t count = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error);
       !error && entry != std::filesystem::directory_iterator();
       entry.increment(error))
    if (std::error_code unknown;
        (entry->is_regular_file(unknown) || entry->is_directory(unknown)) &&
        entry->path().filename().native().starts_with(prefix))
      ++count;
  return count;
}

// "dumps" or "'dumps/rank_*'" for all the files it has; else nothing.
std::string words_for_files(const std::vector<std::string>& paths) {
  constexpr std::size_t kFew = 3;
  if (paths.size() <= kFew)
    return "";
  const std::filesystem::path folder =
      std::filesystem::path(paths[0]).parent_path();
  std::string prefix = std::filesystem::path(paths[0]).filename();
  for (const std::string& path : paths) {
    const std::filesystem::path one = path;
    if (one.parent_path() != folder)
      return "";
    const std::string name = one.filename();
    const auto differ =
        std::mismatch(prefix.begin(), prefix.end(), name.begin(), name.end());
    prefix.erase(differ.first, prefix.end());
  }
  const std::filesystem::path inside = folder.empty() ? "." : folder;
  if (files_with_prefix(inside, "") == paths.size())
    return shell_quoted(inside.native());
  if (files_with_prefix(inside, prefix) == paths.size() &&
      prefix.find_first_of("*?[\\") == prefix.npos)
    return shell_quoted((folder / (prefix + "*")).native());
  return "";
}

}  // namespace

std::string source_words(const JobSource& source) {
  std::string words = words_for_files(source.paths);
  if (words.empty())
    for (const std::string& path : source.paths)
      words += (words.empty() ? "" : " ") + shell_quoted(path);
  if (!source.prefix.empty())
    words += " --prefix " + shell_quoted(source.prefix);
  if (!source.rank_pattern.empty())
    words += " --rank-pattern " + shell_quoted(source.rank_pattern);
  return words;
}

LoadOptions load_options(const JobSource& source) {
  LoadOptions options;
  if (!source.prefix.empty())
    options.names.prefix = source.prefix;
  if (!source.rank_pattern.empty())
    options.names.pattern = source.rank_pattern;
  return options;
}

LoadOptions LoadProgress::follow(LoadOptions options) {
  options.on_start = [this](std::uint64_t files) {
    progress_ = session_.progress({.label = "Reading", .total_files = files});
  };
  options.on_file = [this](std::uint64_t bytes) {
    progress_->advance(bytes, 1);
  };
  return options;
}

}  // namespace postflight
