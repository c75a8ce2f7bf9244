#include "base/environment.h"

#include <cstdlib>

namespace postflight {

Environment process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (value == nullptr)
      return std::nullopt;
    return value;
  };
}

}  // namespace postflight
