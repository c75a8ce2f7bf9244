#pragma once

#include <cstdint>
#include <span>

#include "base/arena.h"
#include "pickle/object.h"
#include "pickle/value.h"

namespace postflight {

using DcpNumbers = std::span<const std::int64_t>;

// Reads the many sizes and offsets of a .metadata pickle.
class DcpSizes {
 public:
  explicit DcpSizes(Arena& arena) : arena_(arena) {}

  // torch.Size((2, 3)), or the tuple itself. False if it is neither.
  bool read(const Value* value, DcpNumbers& to);

 private:
  bool is_size(const Value& value) {
    return value.is(Kind::kObject) &&
           (value.object().callable.bits() == size_class_ || learn(value));
  }
  bool learn(const Value& value);

  Arena& arena_;
  std::uint64_t size_class_ = ~std::uint64_t{0};  // the callable that makes one
};

// A tuple or a list.
inline bool is_sequence(const Value& value) {
  return value.is(Kind::kTuple) || value.is(Kind::kList);
}

}  // namespace postflight
