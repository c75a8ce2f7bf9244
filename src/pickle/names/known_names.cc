#include "pickle/names/known_names.h"

#include <unordered_map>
#include <vector>

namespace postflight {
namespace {

// A package's row counts for all that is in it.
constexpr std::size_t kLongestModule = 100;

struct Table {
  Table() {
    for (const auto rows : {standard_names(), standard_types(),
                            dangerous_names(), torch_names(), package_names()})
      for (const NameRow& row : rows)
        (row.names == kEveryName ? everything : named)[row.module].push_back(
            &row);
  }
  using ByModule =
      std::unordered_map<std::string_view, std::vector<const NameRow*>>;
  ByModule named;
  ByModule everything;
};

// An exception of a library does not do what its functions do.
bool is_exception(std::string_view name) {
  return name.find('.') == name.npos &&
         (name.ends_with("Error") || name.ends_with("Exception") ||
          name.ends_with("Warning"));
}

}  // namespace

bool has_word(std::string_view words, std::string_view name) {
  for (std::size_t at = words.find(name); at != words.npos;
       at = words.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || words[at - 1] == ' ') &&
        (end == words.size() || words[end] == ' '))
      return true;
  }
  return false;
}

const KnownName* known_name(std::string_view module, std::string_view name) {
  static const Table table;
  if (module.size() > kLongestModule)
    module = module.substr(0, kLongestModule + 1);
  if (const auto found = table.named.find(module); found != table.named.end())
    for (const NameRow* const row : found->second)
      if (!name.empty() && has_word(row->names, name))
        return &row->known;
  for (std::string_view package = module;;) {
    const auto found = table.everything.find(package);
    if (found != table.everything.end())
      return is_exception(name) ? nullptr : &found->second.front()->known;
    const std::size_t dot = package.rfind('.');
    if (dot == package.npos)
      return nullptr;
    package = package.substr(0, dot);
  }
}

}  // namespace postflight
