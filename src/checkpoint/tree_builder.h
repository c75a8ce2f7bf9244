#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/pointer_map.h"
#include "checkpoint/tree.h"
#include "pickle/object.h"

namespace postflight {

// What a pickle says of a storage it refers to.
struct StorageReference {
  Dtype dtype;
  std::string_view key;
  std::string_view device;
  std::uint64_t bytes = 0;
  std::uint64_t view_offset = 0;  // in elements, from the storage's front
  std::optional<std::int64_t> number = {};  // the key, where it is no text
};

// Gives the storage for a persistent id, or kNoIndex if it is none.
using StorageResolver =
    std::function<std::uint32_t(const Value& id, StorageReference& reference)>;

// Reads ("storage", class, key, device, count) into a reference. False if the
// id is something else.
bool read_storage_id(const Value& id, StorageReference& reference);

// Nothing if it is no tuple.
inline std::span<const Value> tuple_items(const Value& value) {
  return value.is(Kind::kTuple) ? value.items() : std::span<const Value>();
}

// What torch's and Python's functions that we understand are called here.
enum class KnownCall : std::uint8_t {
  kUnknown,
  kTensor,
  kTensorV3,
  kParameter,
  kFromType,
  kSparse,
  kQuantized,
  kNested,
  kJagged,
  kMeta,
  kFromCpu,
  kWrapper,
  kShardedTensor,
  kDict,
  kDefaultDict,
  kCounter,
  kSet,
  kList,
  kSize,   // torch.Size, a tuple
  kPlain,  // a value that is shown whole: complex, a path
  kNdarray,
  kScalar,
  kFromBuffer,
  kSameAsArgument,  // hands its first argument through
};

// One place still to be written out.
struct TreeChild {
  Key key;
  Value value;
  std::uint32_t parent = 0;
  std::uint32_t closes = kNoIndex;  // the node that ends here
};

// What a rebuilding call says of a tensor.
struct TensorDescription {
  Tensor tensor;
  std::vector<TreeChild> parts;
};

// Turns the values of a pickle into nodes and tensors. Nothing is called: what
// the table of torch's rebuilding functions knows is understood from its
// arguments, everything else is an object with its parts. Nothing recurses on
// the depth of the input.
class TreeBuilder {
 public:
  TreeBuilder(Tree& tree, StorageResolver resolver)
      : tree_(tree), resolver_(std::move(resolver)) {}

  // Gives the tensor that a persistent id itself stands for, as in the oldest
  // files, or kNoIndex.
  using TensorResolver = std::function<std::uint32_t(const Value& id)>;
  void set_tensor_resolver(TensorResolver resolver) {
    tensor_resolver_ = std::move(resolver);
  }

  // About how many tensors there will be.
  void expect(std::size_t tensors) { tensors_.reserve(tensors); }

  // Writes `root` out below `parent`, whose key to it is `key`.
  void build(const Value& root, std::uint32_t parent, const Key& key);
  // The same for each item of a dict; false if `root` is none.
  bool build_items(const Value& root, std::uint32_t parent);

 private:
  void expand(const TreeChild& child);
  void expand_object(const TreeChild& child);
  bool expand_tensor(const TreeChild& child);
  std::uint32_t open_container(const TreeChild& child, NodeKind kind);
  void push(std::uint32_t node, std::span<const TreeChild> children);
  void add_pairs(std::span<const Pair> pairs);
  void add_items(std::span<const Value> items);
  void add_state(const Value& state, std::vector<TreeChild>& to);
  Key key_of(const Value& value);

  KnownCall call_of(const Value& callable);
  bool describe_value(const Value& value, TensorDescription& to, int depth);
  bool describe(KnownCall call, std::span<const Value> arguments,
                TensorDescription& to, int depth);
  bool describe_strided(KnownCall call, std::span<const Value> arguments,
                        TensorDescription& to);
  bool describe_from_type(std::span<const Value> arguments,
                          TensorDescription& to, int depth);
  bool describe_sparse(std::span<const Value> arguments, TensorDescription& to,
                       int depth);
  bool describe_array(const Object& object, KnownCall call,
                      TensorDescription& to);
  bool describe_sharded(const Object& object, TensorDescription& to);
  std::uint32_t inside_storage(const Value& bytes, bool big_endian);
  bool attach(const Value& persistent, TensorDescription& to,
              StorageReference& reference);
  void check(Tensor& tensor, std::uint64_t available);
  bool numbers(const Value& value, std::span<const std::int64_t>& to);

  Tree& tree_;
  StorageResolver resolver_;
  TensorResolver tensor_resolver_;
  std::vector<TreeChild> stack_;
  std::vector<TreeChild> children_;  // of the node being written out
  PointerMap first_;                 // container -> its first node + 1
  PointerMap open_;                  // container -> 1 while it is written out
  PointerMap calls_;                 // global -> KnownCall + 1
  PointerMap tensors_;               // object -> tensor + 1
  PointerMap inside_;                // bytes in the pickle -> storage + 1
  std::uint64_t repeated_ = 0;       // nodes of containers met before
  std::uint32_t repeating_ = 0;      // such containers being written out
};

}  // namespace postflight
