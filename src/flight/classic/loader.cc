#include "flight/classic/loader.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/ascii.h"
#include "flight/model/dump_files.h"
#include "flight/model/rank_names.h"

namespace postflight {
namespace {

// Letters, digits, '_' and '-'; beyond ASCII all is taken for letters.
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         c == '_' || c == '-' || static_cast<unsigned char>(c) >= 0x80;
}

bool is_numbered(std::string_view name, std::string_view prefix) {
  const std::size_t at = name.find(prefix);
  return at != name.npos && at + prefix.size() < name.size() &&
         is_digit(name[at + prefix.size()]);
}

// Several dumps in one file.
bool is_archive(std::string_view name) {
  return name.ends_with(".tar") || name.ends_with(".tgz") ||
         name.find(".tar.") != name.npos;
}

// The names that torchfrtrace looks at to find the prefix: those that lie in
// the folder itself.
std::vector<std::string_view> top_names(const std::vector<std::string>& files,
                                        const std::string& folder) {
  std::vector<std::string_view> names;
  for (const std::string& file : files)
    if (std::filesystem::path(file).parent_path() ==
        std::filesystem::path(folder + "/").parent_path())
      names.push_back(base_name(file));
  return names;
}

}  // namespace

std::optional<std::string> common_prefix(
    const std::vector<std::string_view>& names) {
  std::set<std::string_view> prefixes;
  for (const std::string_view name : names) {
    std::size_t number = name.size();
    while (number > 0 && is_digit(name[number - 1]))
      --number;
    if (number == name.size())
      continue;
    std::size_t begin = number;
    while (begin > 0 && is_word(name[begin - 1]))
      --begin;
    prefixes.insert(name.substr(begin, number - begin));
  }
  if (prefixes.size() != 1)
    return std::nullopt;
  return std::string(*prefixes.begin());
}

Result<ClassicInput> load_classic(const std::string& folder,
                                  const ClassicLoadOptions& options,
                                  const Context& context) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored))
    return fail(ErrorKind::kIo, "AssertionError: folder {} does not exist",
                folder);
  DumpFiles found = TRY(find_dump_files(std::span(&folder, 1)));
  ClassicInput input;
  LoadOptions load = options.load;
  load.names.prefix = options.prefix;
  if (!options.prefix && !load.names.pattern) {
    input.inferred_prefix = common_prefix(top_names(found.files, folder));
    load.names.prefix = input.inferred_prefix;
  }
  const auto is_ours = [&](const std::string& file) {
    const std::string_view name = base_name(file);
    return is_archive(name)     ? true
           : load.names.prefix  ? is_numbered(name, *load.names.prefix)
           : load.names.pattern ? true
                                : !rank_candidates(name).empty();
  };
  std::erase_if(found.files,
                [&](const std::string& file) { return !is_ours(file); });
  if (found.files.empty() && !options.prefix)
    return fail(ErrorKind::kUnsupported,
                "ValueError: Unable to automatically determine the common "
                "prefix for the trace file names. Please specify --prefix "
                "argument manually");
  input.files = found.files.size();
  input.job = TRY(load_files(found.files, load, context));
  input.job.findings.insert(input.job.findings.end(), found.findings.begin(),
                            found.findings.end());
  if (input.job.ranks.empty()) {
    const std::string prefix = load.names.prefix.value_or("None");
    if (input.job.skipped.empty())
      return fail(ErrorKind::kUnsupported,
                  "AssertionError: no files loaded from {} with prefix {}",
                  folder, prefix);
    return fail(ErrorKind::kUnsupported,
                "AssertionError: no files loaded from {} with prefix {} ({}: "
                "{})",
                folder, prefix, input.job.skipped[0].file,
                input.job.skipped[0].reason);
  }
  return input;
}

}  // namespace postflight
