#include "pickle/memo.h"

#include <algorithm>
#include <new>

namespace postflight {

void Memo::clear() {
  size_ = count_ = 0;
  far_.clear();
  fill_up_to(kNear);
}

void Memo::remember_elsewhere(std::uint64_t key, Value value) {
  // A small gap is filled: it is bounded by the number of existing entries.
  if (key >= size_ && ((key == size_ && far_.empty()) || key < count_ + kNear))
    fill_up_to(key + 1);
  if (key >= size_) {
    count_ += far_.insert_or_assign(key, value).second;
    next_ = kNever;
    return;
  }
  const bool known = !is_empty(slots_.get()[key]);
  slots_.get()[key] = value;
  if (far_.empty()) {
    count_ += !known;
    return;
  }
  count_ += !known && far_.erase(key) == 0;
  next_ = far_.empty() ? size_ : kNever;
}

const Value* Memo::find_elsewhere(std::uint64_t key) const {
  const auto found = far_.find(key);
  return found == far_.end() ? nullptr : &found->second;
}

void Memo::reserve(std::uint64_t capacity) {
  if (capacity <= capacity_)
    return;
  void* const memory =
      std::realloc(static_cast<void*>(slots_.get()), capacity * sizeof(Value));
  if (memory == nullptr)
    throw std::bad_alloc();
  static_cast<void>(slots_.release());
  slots_.reset(static_cast<Value*>(memory));
  capacity_ = capacity;
}

void Memo::fill_up_to(std::uint64_t size) {
  if (size > capacity_)
    reserve(std::max(size, capacity_ + capacity_ / 2));
  std::fill(slots_.get() + size_, slots_.get() + size,
            Value::numbered(kNothing, 0));
  size_ = size;
  next_ = far_.empty() ? size_ : kNever;
}

std::uint64_t Memo::memory_bytes() const {
  constexpr std::uint64_t kMapNode = 64;
  return capacity_ * sizeof(Value) + far_.size() * kMapNode;
}

}  // namespace postflight
