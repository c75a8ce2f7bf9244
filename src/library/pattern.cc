// RE2 cannot be part of a shared library: Debian's archive accesses its
// thread-local variables as only a program can. The standard library's regular
// expressions stand for it; they have most of its syntax. As they recurse once
// for each letter, they are for names, not for whole files. This replaces
// base/pattern.cc.

#include "base/pattern.h"

#include <regex>

namespace postflight {
namespace {

// The one that does not backtrack, so that its time is linear.
const auto kSyntax =
    std::regex::ECMAScript | std::regex_constants::__polynomial;
constexpr std::size_t kMostPattern = 1000;
constexpr std::size_t kMostText = 1000;

bool is_short(std::string_view text) {
  return text.size() <= kMostText;
}

}  // namespace

struct Pattern::Compiled {
  std::regex regex;
};

Result<Pattern> Pattern::compile(std::string_view text) {
  if (text.size() > kMostPattern)
    return fail(ErrorKind::kUsage,
                "a regular expression of {} characters is too long; the "
                "library takes up to {}",
                text.size(), kMostPattern);
  try {
    return Pattern(std::make_unique<Compiled>(
        Compiled{std::regex(text.begin(), text.end(), kSyntax)}));
  } catch (const std::regex_error& error) {
    return fail(ErrorKind::kUsage, "'{}' is not a valid regular expression: {}",
                text, error.what());
  }
}

Pattern::Pattern(std::unique_ptr<Compiled> compiled)
    : compiled_(std::move(compiled)) {}
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

int Pattern::groups() const {
  return static_cast<int>(compiled_->regex.mark_count());
}

bool Pattern::found_in(std::string_view text) const {
  return is_short(text) &&
         std::regex_search(text.begin(), text.end(), compiled_->regex);
}

bool Pattern::matches(std::string_view text) const {
  return is_short(text) &&
         std::regex_match(text.begin(), text.end(), compiled_->regex);
}

bool Pattern::matches_start_of(std::string_view text) const {
  return is_short(text) &&
         std::regex_search(text.begin(), text.end(), compiled_->regex,
                           std::regex_constants::match_continuous);
}

std::optional<std::string_view> Pattern::first_group(
    std::string_view text) const {
  std::cmatch found;
  if (!is_short(text) || compiled_->regex.mark_count() == 0 ||
      !std::regex_search(text.data(), text.data() + text.size(), found,
                         compiled_->regex) ||
      !found[1].matched)
    return std::nullopt;
  return text.substr(static_cast<std::size_t>(found.position(1)),
                     static_cast<std::size_t>(found.length(1)));
}

}  // namespace postflight
