#include "checkpoint/key_filter.h"

#include <algorithm>

namespace postflight {

Result<KeyFilter> KeyFilter::make(std::vector<std::string> globs,
                                  const std::vector<std::string>& expressions) {
  KeyFilter filter;
  filter.globs_ = std::move(globs);
  for (const std::string& expression : expressions)
    filter.patterns_.push_back(TRY(Pattern::compile(expression)));
  return filter;
}

bool KeyFilter::picks(const Checkpoint& checkpoint, std::uint32_t node) const {
  if (picks_all())
    return true;
  const std::string printed = checkpoint.path_of(node);
  if (printed.empty() && matches("(root)"))
    return true;
  return matches(printed) || (printed.find('"') != std::string::npos &&
                              matches(plain_path(checkpoint, node)));
}

bool KeyFilter::matches(std::string_view path) const {
  return std::ranges::any_of(globs_,
                             [path](const std::string& glob) {
                               return matches_glob(glob, path);
                             }) ||
         std::ranges::any_of(patterns_, [path](const Pattern& pattern) {
           return pattern.found_in(path);
         });
}

// Where a star could have taken more, it is tried again from the last star
// only: earlier ones need not take more than they did.
bool matches_glob(std::string_view glob, std::string_view text) {
  std::size_t g = 0;
  std::size_t t = 0;
  std::size_t star = glob.npos;
  std::size_t from = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      from = t;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == text[t])) {
      ++g;
      ++t;
    } else if (star != glob.npos) {
      g = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*')
    ++g;
  return g == glob.size();
}

std::string plain_path(const Checkpoint& checkpoint, std::uint32_t node) {
  std::string path;
  for (const Key& key : checkpoint.keys_to(node)) {
    if (key.is_number())
      append_key(key, path);
    else
      append_key_as_torch(key, path);
  }
  return path;
}

}  // namespace postflight
