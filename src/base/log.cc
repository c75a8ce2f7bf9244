#include "base/log.h"

namespace postflight {

namespace {

constexpr LogLevel kDefaultLevel = LogLevel::kInfo;

}  // namespace

LogLevel Log::level(std::string_view channel) const {
  const std::lock_guard lock(levels_mutex_);
  const auto found = levels_.find(channel);
  return found == levels_.end() ? kDefaultLevel : found->second;
}

LogLevel Log::set_level(std::string_view channel, LogLevel level) {
  const std::lock_guard lock(levels_mutex_);
  const auto [entry, is_new] =
      levels_.try_emplace(std::string(channel), kDefaultLevel);
  return std::exchange(entry->second, level);
}

bool Log::takes(LogLevel level, std::string_view channel) const {
  return sink_ != nullptr && level >= this->level(channel);
}

void Log::deliver(LogLevel level, std::string_view channel,
                  std::string_view message) {
  const std::lock_guard lock(sink_mutex_);
  sink_(level, channel, message);
}

}  // namespace postflight
