#pragma once

#include <cstddef>
#include <vector>

namespace postflight {

// One field of all entries of a rank, in order. Many fields never change
// (time-outs, threads, numbers of point-to-point operations that a rank has
// none of): such a column holds its value once.
template <class T>
class Column {
 public:
  void push_back(const T& value) {
    if (size_ == 0)
      first_ = value;
    if (!values_.empty() || value != first_) {
      if (values_.empty())
        values_.assign(size_, first_);
      values_.push_back(value);
    }
    ++size_;
  }

  const T& operator[](std::size_t index) const {
    return values_.empty() ? first_ : values_[index];
  }

  // Replaces each value by what `change` makes of it.
  template <class Change>
  void transform(Change&& change) {
    first_ = size_ == 0 ? first_ : change(first_);
    for (T& value : values_)
      value = change(value);
  }

  std::size_t size() const { return size_; }
  void shrink() { values_.shrink_to_fit(); }
  std::uint64_t memory_bytes() const { return values_.capacity() * sizeof(T); }

 private:
  T first_{};
  std::size_t size_ = 0;
  std::vector<T> values_;  // empty while all are as the first
};

}  // namespace postflight
