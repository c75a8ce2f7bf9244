#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash_index.h"
#include "flight/model/id.h"

namespace postflight {

// The members of a group as a pg_config has them: "[0, 1]".
struct MemberList {
  std::string text;
  std::vector<Rank> ranks;  // sorted; empty if the text is not a list
};

// The lists that the dumps of a job contain, each stored and parsed once. In a
// job of 16,384 ranks, half of each dump is the same few lists: a reader only
// compares them with what it or another one has found before.
class MemberLists {
 public:
  MemberLists() = default;
  MemberLists(const MemberLists&) = delete;
  MemberLists& operator=(const MemberLists&) = delete;

  // The list with this text, valid while this lives. Several threads may call
  // it at once.
  const MemberList& find(std::string_view text);

 private:
  static constexpr std::size_t kRecent = 64;

  // What was found last of those whose size and end look alike.
  std::array<std::atomic<const MemberList*>, kRecent> recent_ = {};
  std::mutex mutex_;  // of all below
  std::deque<MemberList> lists_;
  HashIndex index_;
};

}  // namespace postflight
