#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace postflight {

// Maps the device that a tensor was saved on to another: all to one ("cpu"),
// some
// ("cuda:0=cpu,cuda:1=cuda:0"), or by a function. On "meta" tensors have no
// bytes.
class MapLocation {
 public:
  using Function = std::function<std::string(std::string_view device)>;

  MapLocation() = default;  // maps each device to itself
  explicit MapLocation(Function function) : function_(std::move(function)) {}
  static Result<MapLocation> parse(std::string_view text);

  std::string operator()(std::string_view device) const {
    return function_ ? function_(device) : std::string(device);
  }

 private:
  Function function_;
};

}  // namespace postflight
