#pragma once

#include <cstdint>
#include <string_view>

#include "checkpoint/model/key.h"
#include "checkpoint/model/tensor.h"
#include "pickle/value.h"

namespace postflight {

enum class NodeKind : std::uint8_t {
  kDict,  // and similar ones: OrderedDict, defaultdict
  kList,
  kTuple,  // and named tuples
  kSet,
  kObject,     // of a class we only know the name of
  kTensor,     // `index` of a Tensor; its parts and attributes are below it
  kReference,  // to the earlier node `index`: a cycle, or a container that is
               // shared so often that it is not repeated
  kValue,      // anything else
};

constexpr std::string_view node_kind_name(NodeKind kind) {
  switch (kind) {
    case NodeKind::kDict:
      return "dict";
    case NodeKind::kList:
      return "list";
    case NodeKind::kTuple:
      return "tuple";
    case NodeKind::kSet:
      return "set";
    case NodeKind::kObject:
      return "object";
    case NodeKind::kTensor:
      return "tensor";
    case NodeKind::kReference:
      return "reference";
    case NodeKind::kValue:
      return "value";
  }
  return "";
}

// A node of a checkpoint's object tree. Nodes are in one array, each before its
// descendants.
struct Node {
  NodeKind kind = NodeKind::kValue;
  Key key;                   // from its parent
  std::uint32_t parent = 0;  // the root is its own
  std::uint32_t end = 0;     // the next node that is not a descendant
  std::uint32_t index = kNoIndex;
  std::uint32_t children = 0;
  // "OrderedDict", "jobcode.Config"; empty for built-in types.
  std::string_view type;
  Value value;  // None if the source is not a pickle
};

}  // namespace postflight
