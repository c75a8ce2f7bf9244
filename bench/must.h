#pragma once

#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace postflight {

// Unwraps a result that a benchmark requires; exits with the error otherwise.
template <class T>
T must(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "{}\n", result.error().message());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>)
    return *std::move(result);
}

}  // namespace postflight
