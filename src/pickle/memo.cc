#include "pickle/memo.h"

namespace postflight {

void Memo::clear() {
  slots_.assign(kNear, Value::numbered(kNothing, 0));
  far_.clear();
  count_ = 0;
}

void Memo::remember_elsewhere(std::uint64_t key, Value value) {
  // Entries that were made pay for a few that were skipped.
  if (key >= slots_.size() && key < count_ + kNear)
    slots_.resize(key + 1, Value::numbered(kNothing, 0));
  if (key < slots_.size()) {
    count_ += is_empty(slots_[key]) && !forget_far(key);
    slots_[key] = value;
  } else {
    count_ += far_.insert_or_assign(key, value).second;
  }
}

const Value* Memo::find_elsewhere(std::uint64_t key) const {
  const auto found = far_.find(key);
  return found == far_.end() ? nullptr : &found->second;
}

std::uint64_t Memo::memory_bytes() const {
  constexpr std::uint64_t kMapNode = 64;
  return slots_.capacity() * sizeof(Value) + far_.size() * kMapNode;
}

}  // namespace postflight
