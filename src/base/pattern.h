#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace postflight {

// An untrusted regular expression (RE2), matched in linear time.
class Pattern {
 public:
  static Result<Pattern> compile(std::string_view expression);
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  int groups() const;
  // Whether some part of `text` matches.
  bool found_in(std::string_view text) const;
  // Whether all of `text` matches, or its beginning.
  bool matches(std::string_view text) const;
  bool matches_start_of(std::string_view text) const;
  // `text` with each match replaced; in `replacement`, \1 is a capture group.
  std::string replaced_in(std::string_view text,
                          std::string_view replacement) const;
  // The first capture group of the first match, a view into `text`.
  std::optional<std::string_view> first_group(std::string_view text) const;

 private:
  struct Compiled;
  explicit Pattern(std::unique_ptr<Compiled> compiled);

  std::unique_ptr<Compiled> compiled_;
};

}  // namespace postflight
