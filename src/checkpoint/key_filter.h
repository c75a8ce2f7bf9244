#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/pattern.h"
#include "checkpoint/model/checkpoint.h"

namespace postflight {

// Picks nodes by their printed paths: any of several globs, in which * stands
// for any text and ? for one character, or of several regular expressions. A
// path whose keys stand in quotes (model."a.b") also answers to the one without
// (model.a.b), and the root, whose path is empty, to (root). Without any,
// everything is picked.
class KeyFilter {
 public:
  static Result<KeyFilter> make(std::vector<std::string> globs,
                                const std::vector<std::string>& expressions);

  bool picks_all() const { return globs_.empty() && patterns_.empty(); }
  bool picks(const Checkpoint& checkpoint, std::uint32_t node) const;

 private:
  bool matches(std::string_view path) const;

  std::vector<std::string> globs_;
  std::vector<Pattern> patterns_;
};

// Whether `glob` describes all of `text`.
bool matches_glob(std::string_view glob, std::string_view text);

// The path as it is printed, without quotes.
std::string plain_path(const Checkpoint& checkpoint, std::uint32_t node);

}  // namespace postflight
