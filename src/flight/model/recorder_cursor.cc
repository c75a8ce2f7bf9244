#include "flight/model/recorder_cursor.h"

#include <bit>
#include <cmath>

namespace postflight {

bool RecorderCursor::read_duration(double& milliseconds) {
  if (!at(Opcode::kBinFloat) || !has(9))
    return false;
  const double read =
      std::bit_cast<double>(__builtin_bswap64(load<std::uint64_t>(1)));
  milliseconds = std::isfinite(read) ? read : -1;
  next_ += 9;
  return true;
}

bool RecorderCursor::put(const Remembered& what) {
  const std::size_t size = at(Opcode::kBinPut) ? 2 : 5;
  if (!has(size) ||
      (size == 2 ? next_[1] : load<std::uint32_t>(1)) != memo_.size())
    return false;
  next_ += size;
  memo_.push_back(what);
  return true;
}

Remembered* RecorderCursor::read_new_text() {
  if (!at(Opcode::kBinUnicode) || !has(5))
    return nullptr;
  const auto size = load<std::uint32_t>(1);
  next_ += 5;
  if (!has(size))
    return nullptr;
  passing_ = {.kind = Remembered::kText,
              .text = {reinterpret_cast<const char*>(next_), size}};
  next_ += size;
  const std::size_t before = memo_.size();
  if (!remember(passing_))
    return nullptr;
  return memo_.size() > before ? &memo_.back() : &passing_;
}

}  // namespace postflight
