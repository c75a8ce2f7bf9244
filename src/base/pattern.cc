#include "base/pattern.h"

#include <utility>

#include <re2/re2.h>

namespace postflight {

struct Pattern::Compiled {
  explicit Compiled(std::string_view text)
      : expression({text.data(), text.size()}, RE2::Quiet) {}

  RE2 expression;
};

namespace {

re2::StringPiece piece(std::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

Pattern::Pattern(std::unique_ptr<Compiled> compiled)
    : compiled_(std::move(compiled)) {}
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

Result<Pattern> Pattern::compile(std::string_view expression) {
  auto compiled = std::make_unique<Compiled>(expression);
  if (!compiled->expression.ok())
    return fail(ErrorKind::kUsage, "'{}' is not a valid regular expression: {}",
                expression, compiled->expression.error());
  return Pattern(std::move(compiled));
}

int Pattern::groups() const {
  return compiled_->expression.NumberOfCapturingGroups();
}

bool Pattern::found_in(std::string_view text) const {
  return RE2::PartialMatch(piece(text), compiled_->expression);
}

bool Pattern::matches(std::string_view text) const {
  return RE2::FullMatch(piece(text), compiled_->expression);
}

bool Pattern::matches_start_of(std::string_view text) const {
  return compiled_->expression.Match(piece(text), 0, text.size(),
                                     RE2::ANCHOR_START, nullptr, 0);
}

std::string Pattern::replaced_in(std::string_view text,
                                 std::string_view replacement) const {
  std::string replaced(text);
  RE2::GlobalReplace(&replaced, compiled_->expression, piece(replacement));
  return replaced;
}

std::optional<std::string_view> Pattern::first_group(
    std::string_view text) const {
  re2::StringPiece parts[2];
  if (!compiled_->expression.Match(piece(text), 0, text.size(), RE2::UNANCHORED,
                                   parts, 2) ||
      parts[1].data() == nullptr)
    return std::nullopt;
  return std::string_view(parts[1].data(), parts[1].size());
}

}  // namespace postflight
