#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace postflight {

// An index into one of the job's tables. Each table has an id type of its own,
// so that a stack is never mistaken for a shape.
template <class Table>
struct Id {
  std::uint32_t value = 0;

  auto operator<=>(const Id&) const = default;
};

using TextId = Id<struct TextTable>;
using FrameId = Id<struct FrameTable>;
using StackId = Id<struct StackTable>;    // 0: no frames were recorded
using SizesId = Id<struct SizesTable>;    // 0: no tensors
using DtypesId = Id<struct DtypesTable>;  // 0: no tensors
using ThreadId = Id<struct ThreadTable>;
using CallId = Id<struct CallTable>;
using GroupId = Id<struct GroupTable>;

struct Rank {
  std::int32_t value = 0;

  auto operator<=>(const Rank&) const = default;
};

}  // namespace postflight

template <class Table>
struct std::hash<postflight::Id<Table>> {
  std::size_t operator()(postflight::Id<Table> id) const { return id.value; }
};
