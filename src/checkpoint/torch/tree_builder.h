#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/pointer_map.h"
#include "checkpoint/model/contents.h"
#include "checkpoint/model/tree.h"
#include "checkpoint/torch/known_call.h"
#include "checkpoint/torch/storage_reference.h"
#include "pickle/object.h"

namespace postflight {

// A child of a node that is being built.
struct TreeChild {
  Key key;
  Value value;
};

// What a rebuilding call says of a tensor.
struct TensorDescription {
  Tensor& tensor;
  std::vector<TreeChild> parts = {};
};

// Turns the values of a pickle into nodes and tensors; tree_builder.cc explains
// how.
class TreeBuilder {
 public:
  TreeBuilder(Tree& tree, StorageResolver resolver)
      : tree_(tree),
        at_start_(tree.memory_bytes()),
        resolver_(std::move(resolver)) {}

  // Returns the tensor that a persistent id itself stands for, as in the oldest
  // files, or kNoIndex.
  using TensorResolver = std::function<std::uint32_t(const Value& id)>;
  void set_tensor_resolver(TensorResolver resolver) {
    tensor_resolver_ = std::move(resolver);
  }

  // The memory that the tree and its making may take; beyond it, nothing more
  // is added.
  void limit(std::uint64_t bytes) { most_ = bytes; }
  bool is_over() const { return is_over_; }

  // About how many tensors there will be.
  void expect(std::size_t tensors) { made_.reserve(tensors); }

  // Adds the tree of `root` below `parent`, under `key`.
  void build(const Value& root, std::uint32_t parent, const Key& key);
  // The same for each item of a dict; false if `root` is not a dict.
  bool build_items(const Value& root, std::uint32_t parent);

 private:
  // A node whose children are being added; those from `next` to `end` are
  // pending.
  struct Opened {
    Value value;
    std::uint32_t node = 0;
    std::size_t begin = 0;  // in children_
    std::size_t next = 0;
    std::size_t end = 0;
  };

  // The tensor that an object turned out to be.
  struct Made {
    const Object* object = nullptr;
    std::uint32_t tensor = 0;
  };

  bool has_room(std::uint64_t more);
  // Vectors grow by a quarter: to double them would take three times as much.
  template <class T>
  bool make_room(std::vector<T>& items, std::size_t count);
  void write_out();
  void close();
  void expand(const TreeChild& child, std::uint32_t parent);
  void expand_object(const TreeChild& child, std::uint32_t parent,
                     KnownCall call);
  bool expand_tensor(const TreeChild& child, std::uint32_t parent,
                     KnownCall call);
  bool expand_persistent(const TreeChild& child, std::uint32_t parent);
  std::uint32_t add_tensor(const TreeChild& child, std::uint32_t parent,
                           std::uint32_t tensor);
  void add_value(const TreeChild& child, std::uint32_t parent);
  // Adds the node; kNoIndex if it became a reference, which has no children.
  std::uint32_t open_container(const TreeChild& child, std::uint32_t parent,
                               NodeKind kind);
  // Makes the children from `begin` on those of `node`.
  void open(std::uint32_t node, std::size_t begin);
  void add_pairs(std::span<const Pair> pairs);
  void add_items(std::span<const Value> items);
  void add_state(const Value& state, std::vector<TreeChild>& to);
  Key key_of(const Value& value);

  KnownCall call_of(const Value& callable);
  KnownCall call_that_made(const Value& value) {
    return value.is(Kind::kObject) ? call_of(value.object().callable)
                                   : KnownCall::kUnknown;
  }
  Value unwrapped(Value value);
  // `call` is the one that made the value.
  bool describe_value(const Value& value, KnownCall call, TensorDescription& to,
                      int depth);
  bool describe_inner(const Value& value, TensorDescription& to, int depth) {
    return describe_value(value, call_that_made(value), to, depth + 1);
  }
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

  std::uint64_t most_ = ~std::uint64_t{0};
  bool is_over_ = false;
  Tree& tree_;
  std::uint64_t at_start_ = 0;  // the memory of the tree
  StorageResolver resolver_;
  TensorResolver tensor_resolver_;
  std::vector<Opened> opened_;           // each is a child of the one before
  std::vector<TreeChild> children_;      // of all opened nodes
  PointerMap first_;                     // container -> its first node + 1
  PointerMap open_;                      // container -> 1 (2: again) while open
  PointerMap calls_;                     // global -> KnownCall + 1
  const Global* last_global_ = nullptr;  // most calls are of the same one
  KnownCall last_call_ = KnownCall::kUnknown;
  PointerMap persistent_;        // id -> tensor + 1
  std::vector<Made> made_;       // found by the mark of an object, less 1
  PointerMap inside_;            // bytes in the pickle -> storage + 1
  std::uint64_t repeated_ = 0;   // nodes in containers that are repeated
  std::uint32_t repeating_ = 0;  // such containers that are open
};

// Builds the tree of `root` where the context says; fails if only the items of
// a dict are wanted and it is not one.
Result<> place(TreeBuilder& builder, const Value& root,
               const SourceContext& context);

}  // namespace postflight
