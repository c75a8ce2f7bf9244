#pragma once

#include <cstdint>
#include <string_view>

#include "checkpoint/model/key.h"
#include "checkpoint/model/tensor.h"
#include "pickle/value.h"

namespace postflight {

enum class NodeKind : std::uint8_t {
  kDict,  // and what is made like one: OrderedDict, defaultdict
  kList,
  kTuple,  // and named tuples
  kSet,
  kObject,     // of a class we only know the name of
  kTensor,     // `index` of a Tensor; its parts and attributes are below it
  kReference,  // to the node `index` that was met before: a cycle, or what
               // is shared so often that it is not written out again
  kValue,      // anything else
};

// One place of a checkpoint's object tree. Nodes stand in one array, each
// before what is below it.
struct Node {
  NodeKind kind = NodeKind::kValue;
  Key key;                   // from its parent
  std::uint32_t parent = 0;  // the root is its own
  std::uint32_t end = 0;     // the next node that is not below this one
  std::uint32_t index = kNoIndex;
  std::uint32_t children = 0;
  // "OrderedDict", "jobcode.Config"; empty for Python's own.
  std::string_view type;
  Value value;  // None where the source is no pickle
};

}  // namespace postflight
