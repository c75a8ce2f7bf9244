#include "checkpoint/torch/entry_role.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/ascii.h"

namespace postflight {

bool has_pickle_name(std::string_view name) {
  const std::string tail = lowered(
      name.substr(name.size() - std::min<std::size_t>(name.size(), 10)));
  return tail.ends_with(".pkl") || tail.ends_with(".pickle") ||
         tail.ends_with(".debug_pkl");
}

std::string shown_entry(std::string_view name) {
  constexpr std::size_t kLongestName = 300;
  return name.size() <= kLongestName
             ? std::string(name)
             : fmt::format("{}…", name.substr(0, kLongestName));
}

bool has_storages(const ZipDirectory& directory) {
  const auto root = directory.root();
  if (!root)
    return false;
  return std::ranges::any_of(
      std::array{"data.pkl", ".data/version", ".data/extern_modules",
                 "archive_format", "constants.pkl"},
      [&](std::string_view name) {
        return directory.find_ignoring_case(
                   fmt::format("{}/{}", *root, name)) != nullptr;
      });
}

bool is_storage_name(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash == name.npos)
    return false;
  name.remove_prefix(slash + 1);
  if (name.starts_with(".data/"))
    return name.ends_with(".storage");
  for (const std::string_view folder : {"data/weights/", "data/constants/",
                                        "data/", "constants/", "tensors/"}) {
    if (!name.starts_with(folder))
      continue;
    const std::string_view rest = name.substr(folder.size());
    return !rest.empty() && rest.find('/') == rest.npos &&
           rest.find('.') == rest.npos;
  }
  return false;
}

std::string PythonModules::doubt() const {
  return fmt::format(
      "it is Python source{}, which a loader of packages would run and which "
      "is "
      "not looked into",
      sources > 1 ? fmt::format(" (and {} more such)", sources - 1) : "");
}

namespace {

// How long the ending is that makes a name one of a Python module; 0: none is.
std::size_t module_ending(std::string_view name) {
  for (const std::string_view ending : {".py", ".pyc", ".pyo", ".pyw"})
    if (name.size() >= ending.size() &&
        lowered(name.substr(name.size() - ending.size())) == ending)
      return ending.size();
  return 0;
}

}  // namespace

PythonModules python_modules(const ZipDirectory& directory) {
  PythonModules found;
  const std::string_view root = directory.root().value_or("");
  const bool script =
      directory.find(fmt::format("{}/constants.pkl", root)) != nullptr;
  for (const ZipEntry& entry : directory.entries()) {
    std::string_view name = entry.name;
    const std::size_t ending = module_ending(name);
    if (ending == 0)
      continue;
    if (!root.empty() && name.starts_with(root))
      name.remove_prefix(std::min(root.size() + 1, name.size()));
    if (script && name.starts_with("code/"))
      continue;
    if (found.sources++ == 0)
      found.first = shown_entry(entry.name);
    name.remove_suffix(std::min(ending, name.size()));
    std::string module(name);
    std::ranges::replace(module, '/', '.');
    if (module.ends_with(".__init__"))
      module.resize(module.size() - std::string_view(".__init__").size());
    found.names.insert(std::move(module));
  }
  return found;
}

bool leaves_folder(std::string_view path) {
  if (path.starts_with('/') || (path.size() > 1 && path[1] == ':'))
    return true;
  for (std::size_t at = path.find(".."); at != path.npos;
       at = path.find("..", at + 2))
    if ((at == 0 || path[at - 1] == '/') &&
        (at + 2 == path.size() || path[at + 2] == '/'))
      return true;
  return false;
}

std::vector<EntryDoubt> entry_doubts(const ZipEntry& entry,
                                     const LocalHeader& local) {
  constexpr std::uint16_t kEncrypted = 0x2041;
  std::vector<EntryDoubt> doubts;
  if (local.name != entry.name)
    doubts.push_back(
        {"names_differ", fmt::format("its own header calls it '{}'; readers "
                                     "differ in which they believe",
                                     shown_entry(local.name))});
  if (entry.name.find('\\') != entry.name.npos)
    doubts.push_back({"backslash_name",
                      "its name has a backslash, which separates folders for "
                      "some readers"});
  if (entry.name.find('\0') != entry.name.npos)
    doubts.push_back({"zero_in_name",
                      "its name has a zero byte, where it ends for some "
                      "readers"});
  if (leaves_folder(entry.name))
    doubts.push_back(
        {"unsafe_path", "its name leads out of the archive's folder"});
  if (((entry.flags | local.flags) & kEncrypted) != 0)
    doubts.push_back(
        {"encrypted",
         "it is marked as encrypted, which not all readers respect"});
  return doubts;
}

std::string method_name(std::uint16_t method) {
  switch (method) {
    case 9:
      return "deflate64";
    case 12:
      return "bzip2";
    case 14:
      return "lzma";
    case 93:
      return "zstd";
    case 95:
      return "xz";
    default:
      return fmt::format("method {}", method);
  }
}

}  // namespace postflight
