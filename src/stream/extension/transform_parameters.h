#pragma once

#include "base/error.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace postflight {

// What a transform is told beyond its descriptor: "level=9,threads=2".
class TransformParameters {
 public:
  static Result<TransformParameters> parse(std::string_view text);

  // The parameter as a number from `low` to `high`; `otherwise` if not given.
  Result<std::int64_t> integer(std::string_view name, std::int64_t otherwise,
                               std::int64_t low, std::int64_t high) const;
  // The parameter as one of `choices`, of which the first is the default.
  Result<std::string_view> choice(
      std::string_view name, std::span<const std::string_view> choices) const;

  // In the order given.
  std::span<const std::pair<std::string, std::string>> all() const {
    return values_;
  }

 private:
  const std::string* find(std::string_view name) const;

  std::vector<std::pair<std::string, std::string>> values_;
};

}  // namespace postflight
