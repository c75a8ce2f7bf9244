#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace postflight {

// Where tensors that were saved on one device are to be: all on one ("cpu"), or
// some moved ("cuda:0=cpu,cuda:1=cuda:0"), or as a function says. On "meta"
// they have no bytes.
class MapLocation {
 public:
  using Function = std::function<std::string(std::string_view device)>;

  MapLocation() = default;  // everything stays where it was
  explicit MapLocation(Function function) : function_(std::move(function)) {}
  static Result<MapLocation> parse(std::string_view text);

  std::string operator()(std::string_view device) const {
    return function_ ? function_(device) : std::string(device);
  }

 private:
  Function function_;
};

}  // namespace postflight
