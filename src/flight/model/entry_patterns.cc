#include "flight/model/entry_patterns.h"

#include <algorithm>
#include <cstring>

namespace postflight {
namespace {

std::uint64_t meaning(const Entry& entry) {
  const std::uint64_t what =
      std::uint64_t{entry.call.value} << 32 | std::uint64_t{entry.stack.value};
  const std::uint64_t how = std::uint64_t{entry.thread.value} << 8 |
                            std::uint64_t{static_cast<unsigned>(entry.state)}
                                << 1 |
                            std::uint64_t{entry.retired};
  return (what ^ how * 0xd1b54a32d192ed03) * 0x9e3779b97f4a7c15;
}

}  // namespace

EntryPatterns::EntryPatterns() : places_(kMostPatterns, kNone) {}

bool EntryPatterns::read(RecorderCursor& in, Entry& entry) {
  if (last_ == kNone)
    return false;
  for (const std::uint16_t next : patterns_[last_].followers) {
    if (next == kNone)
      return false;
    const unsigned char* const before = in.place();
    if (read_as(patterns_[next], in, entry)) {
      follow(next);
      return true;
    }
    in.go_back(before);
  }
  return false;
}

bool EntryPatterns::read_as(const Pattern& pattern, RecorderCursor& in,
                            Entry& entry) {
  entry = pattern.entry;
  for (std::size_t i = 0;; ++i) {
    const Part& part = pattern.parts[i];
    if (!in.has(part.size) ||
        std::memcmp(in.place(), part.bytes, part.size) != 0)
      return false;
    in.skip(part.size);
    if (i == pattern.numbers)
      return true;
    if (part.number == nullptr ? !in.read_duration(entry.duration_ms)
                               : !in.read_integer(entry.*part.number, 0))
      return false;
  }
}

void EntryPatterns::begin(const RecorderCursor& in) {
  learned_ = {};
  part_begin_ = in.place();
  memo_before_ = in.memo_size();
  too_many_ = false;
}

void EntryPatterns::note(const unsigned char* place, const RecorderCursor& in,
                         std::int64_t Entry::*number) {
  if (learned_.numbers == kMostNumbers) {
    too_many_ = true;
    return;
  }
  learned_.parts[learned_.numbers++] = {
      part_begin_, static_cast<std::size_t>(place - part_begin_), number};
  part_begin_ = in.place();
}

void EntryPatterns::end(const RecorderCursor& in, const Entry& entry) {
  if (too_many_ || in.memo_size() != memo_before_) {
    last_ = kNone;
    return;
  }
  std::uint16_t& place = places_[meaning(entry) >> 56];
  if (place == kNone) {
    place = static_cast<std::uint16_t>(patterns_.size());
    patterns_.emplace_back();
  }
  learned_.parts[learned_.numbers] = {
      part_begin_, static_cast<std::size_t>(in.place() - part_begin_), nullptr};
  learned_.entry = entry;
  learned_.followers = patterns_[place].followers;
  patterns_[place] = learned_;
  follow(place);
}

void EntryPatterns::follow(std::uint16_t next) {
  if (last_ != kNone) {
    auto& followers = patterns_[last_].followers;
    const auto known = std::ranges::find(followers, next);
    const auto end = known == followers.end() ? known : known + 1;
    std::rotate(followers.begin(), end - 1, end);
    followers.front() = next;
  }
  last_ = next;
}

}  // namespace postflight
