#include "flight/model/member_lists.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/hash.h"
#include "flight/model/rank_set.h"

namespace postflight {

const MemberList& MemberLists::find(std::string_view text) {
  constexpr std::size_t kEnd = 16;
  const std::string_view end =
      text.substr(text.size() - std::min(text.size(), kEnd));
  const std::size_t place = (hash_bytes(as_bytes(end)) ^ text.size()) % kRecent;
  const MemberList* const recent =
      recent_[place].load(std::memory_order_acquire);
  if (recent != nullptr && recent->text == text)
    return *recent;
  const std::uint64_t hash = hash_bytes(as_bytes(text));
  const std::lock_guard lock(mutex_);
  const auto next = static_cast<std::uint32_t>(lists_.size());
  std::uint32_t number = index_.find_or_add(
      hash, next, [&](std::uint32_t i) { return lists_[i].text == text; });
  if (number == HashIndex::kNone) {
    number = next;
    lists_.push_back({std::string(text),
                      parse_member_list(text).value_or(std::vector<Rank>())});
  }
  recent_[place].store(&lists_[number], std::memory_order_release);
  return lists_[number];
}

}  // namespace postflight
