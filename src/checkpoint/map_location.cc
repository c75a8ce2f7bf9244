#include "checkpoint/map_location.h"

namespace postflight {

Result<MapLocation> MapLocation::parse(std::string_view text) {
  if (text.empty())
    return MapLocation();
  if (text.find('=') == text.npos)
    return MapLocation(
        [to = std::string(text)](std::string_view) { return to; });
  std::vector<std::pair<std::string, std::string>> moves;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view move = text.substr(0, end);
    const std::size_t equals = move.find('=');
    if (equals == move.npos || equals == 0 || equals + 1 == move.size())
      return fail(ErrorKind::kUsage,
                  "'{}' does not map a device to another; write old=new", move);
    moves.emplace_back(move.substr(0, equals), move.substr(equals + 1));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return MapLocation([moves](std::string_view device) {
    for (const auto& [from, to] : moves)
      if (from == device)
        return to;
    return std::string(device);
  });
}

}  // namespace postflight
