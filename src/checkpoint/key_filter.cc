#include "checkpoint/key_filter.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/glob.h"

namespace postflight {
namespace {

constexpr std::string_view kRootName = "(root)";

// The length of the index that `text` begins with: [0], [*], [1?]. Otherwise 0.
std::size_t index_length(std::string_view text) {
  const std::size_t end = text.find_first_not_of("0123456789*?", 1);
  return end != text.npos && end > 1 && text[end] == ']' ? end + 1 : 0;
}

// Writes the bracket of an index as a glob writes a bracket: opt[0] is
// opt[[]0].
std::string with_literal_indexes(std::string_view glob) {
  std::string text;
  while (!glob.empty()) {
    const std::size_t bracket = std::min(glob.find('['), glob.size());
    text += glob.substr(0, bracket);
    glob.remove_prefix(bracket);
    if (glob.empty())
      break;
    text += index_length(glob) > 0 ? "[[]" : "[";
    glob.remove_prefix(1);
  }
  return text;
}

// The length of the quoted key at `text`, with its quotes.
std::size_t quoted_length(std::string_view text) {
  std::size_t i = 1;
  while (i < text.size() && text[i] != '"')
    i += text[i] == '\\' ? 2 : 1;
  return std::min(i + 1, text.size());
}

// A path or glob with quotes around each key, not only where somebody put them:
// model."0.weight" is "model"."0.weight". Without any quotes it is empty, as
// where one key ends is then open.
std::string with_all_quotes(std::string_view spelling) {
  std::string text;
  if (spelling.find('"') == spelling.npos)
    return text;
  while (!spelling.empty()) {
    std::size_t length = 0;
    if (spelling.front() == '"') {
      length = quoted_length(spelling);
      text += spelling.substr(0, length);
    } else if (spelling.front() == '.') {
      length = 1;
      text += '.';
    } else if (spelling.front() == '[' && index_length(spelling) > 0) {
      length = index_length(spelling);
      text += spelling.substr(0, length);
    } else {
      while (length < spelling.size() && spelling[length] != '.' &&
             (spelling[length] != '[' ||
              index_length(spelling.substr(length)) == 0))
        ++length;
      text += '"';
      text += spelling.substr(0, length);
      text += '"';
    }
    spelling.remove_prefix(length);
  }
  return text;
}

std::string quoted_path(const Checkpoint& checkpoint, std::uint32_t node) {
  std::string path;
  for (Key key : checkpoint.keys_to(node)) {
    key.quotes = Key::Quotes::kAlways;
    append_key(key, path);
  }
  return path;
}

}  // namespace

Result<KeyFilter> KeyFilter::make(const std::vector<std::string>& globs,
                                  const std::vector<std::string>& expressions) {
  KeyFilter filter;
  for (const std::string& glob : globs) {
    filter.globs_.push_back(with_literal_indexes(glob));
    const std::string quoted = with_all_quotes(glob);
    if (!quoted.empty())
      filter.quoted_globs_.push_back(with_literal_indexes(quoted));
  }
  for (const std::string& expression : expressions)
    filter.patterns_.push_back(TRY(Pattern::compile(expression)));
  return filter;
}

bool KeyFilter::picks(const Checkpoint& checkpoint, std::uint32_t node) const {
  if (picks_all())
    return true;
  const std::string printed = checkpoint.path_of(node);
  if (printed.empty() && matches(kRootName))
    return true;
  if (matches(printed) || (printed.find('"') != std::string::npos &&
                           matches(plain_path(checkpoint, node))))
    return true;
  return !quoted_globs_.empty() &&
         std::ranges::any_of(
             quoted_globs_,
             [path = quoted_path(checkpoint, node)](const std::string& glob) {
               return glob_matches(glob, path);
             });
}

bool KeyFilter::matches(std::string_view path) const {
  return std::ranges::any_of(globs_,
                             [path](const std::string& glob) {
                               return glob_matches(glob, path);
                             }) ||
         std::ranges::any_of(patterns_, [path](const Pattern& pattern) {
           return pattern.found_in(path);
         });
}

Result<std::vector<std::uint32_t>> select_nodes(const Checkpoint& checkpoint,
                                                const KeyFilter& filter,
                                                NodeKinds kinds) {
  std::vector<std::uint32_t> nodes;
  const auto count = static_cast<std::uint32_t>(checkpoint.nodes().size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const bool wanted = kinds == NodeKinds::kAll ||
                        checkpoint.nodes()[i].kind == NodeKind::kTensor;
    if (wanted && filter.picks(checkpoint, i))
      nodes.push_back(i);
  }
  if (nodes.empty() && !filter.picks_all())
    return fail(ErrorKind::kUsage, "no key of {} matches",
                checkpoint.path().string());
  return nodes;
}

Result<std::uint32_t> find_node(const Checkpoint& checkpoint,
                                std::string_view path) {
  // Any spelling; where they differ, the printed one is of one node only.
  const std::string quoted = with_all_quotes(path);
  std::vector<std::uint32_t> plain;
  const auto count = static_cast<std::uint32_t>(checkpoint.nodes().size());
  for (std::uint32_t i = 0; i < count; ++i)
    if (checkpoint.path_of(i) == path || plain_path(checkpoint, i) == path ||
        (!quoted.empty() && quoted_path(checkpoint, i) == quoted))
      plain.push_back(i);
  if (plain.size() == 1)
    return plain.front();
  if (plain.size() > 1)
    return fail(ErrorKind::kUsage, "{} is the path of {} keys: {}, {}{}", path,
                plain.size(), checkpoint.path_of(plain[0]),
                checkpoint.path_of(plain[1]), plain.size() > 2 ? ", ..." : "");
  if (path == kRootName && count > 0)
    return 0;
  return fail(ErrorKind::kUsage,
              "no key is called {}; postflight ckpt ls --all shows them", path);
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
