// How trees are built.
//
// A pickle is a program whose result is a graph: dicts, lists and objects that
// refer to each other, share children, and may form cycles. A checkpoint is
// shown, searched and compared as a tree in which every tensor has a path. The
// builder turns the graph of Values into that tree, with three rules:
//
// - Nothing is called. Known calls (known_call.cc) are interpreted from their
//   arguments: _rebuild_tensor_v2 becomes a tensor, OrderedDict a dict,
//   torch.Size a tuple. Any other call is an object whose arguments, items and
//   state are its children.
// - Shared containers are repeated, so that each path to a tensor exists:
//   {"a": x, "b": x} has tensors below both a and b. The tensors themselves are
//   created once, and both nodes refer to the same one. A container inside
//   itself becomes a kReference to the node that is being built. As a few
//   hundred bytes can nest to billions of paths, containers are no longer
//   repeated after kMostRepeated nodes, but referred to as well.
// - Nothing recurses on the depth of the input. `opened_` is the path from the
//   root to the current node, and `children_` is one stack with the pending
//   children of all of them: expanding a node pushes its children, closing it
//   pops them.
//
// Nodes are appended in the order in which they are visited (preorder), so the
// descendants of a node are the range up to its `end`, and no node has a list
// of children.
//
//   {"w": T1, "opt": [T1]}     0 dict      end 4
//                              1 .w        tensor 0, end 2
//                              2 .opt      list, end 4
//                              3 .opt[0]   tensor 0, end 4
//
// Rejected: one node per container, with links between nodes. It is smaller
// where much is shared, but then a node has no single path, and everything that
// prints or compares paths needs a walk of its own.

#include "checkpoint/torch/tree_builder.h"

#include <algorithm>

#include "base/hash.h"
#include "base/hash_index.h"
#include "checkpoint/model/value_repr.h"

namespace postflight {
namespace {

constexpr std::uint64_t kMostRepeated = 100'000;

bool is_attributes(const Value& state) {
  return state.is(Kind::kDict);
}

}  // namespace

void TreeBuilder::build(const Value& root, std::uint32_t parent,
                        const Key& key) {
  expand({key, root}, parent);
  write_out();
}

bool TreeBuilder::build_items(const Value& root, std::uint32_t parent) {
  if (root.is(Kind::kDict))
    add_pairs(root.pairs());
  else if (call_that_made(root) == KnownCall::kDict)
    add_pairs(root.object().pairs());
  else
    return false;
  const std::size_t count = children_.size();
  for (std::size_t i = 0; i < count && !is_over_; ++i) {
    const TreeChild child = children_[i];
    build(child.value, parent, child.key);
  }
  children_.clear();
  return true;
}

bool TreeBuilder::has_room(std::uint64_t more) {
  // Maps double when they are full.
  const std::uint64_t maps =
      first_.memory_bytes() + open_.memory_bytes() + persistent_.memory_bytes();
  const std::uint64_t own = children_.capacity() * sizeof(TreeChild) +
                            opened_.capacity() * sizeof(Opened) +
                            made_.capacity() * sizeof(Made) + 2 * maps;
  is_over_ = is_over_ || tree_.memory_bytes() - at_start_ + own + more > most_;
  return !is_over_;
}

template <class T>
bool TreeBuilder::make_room(std::vector<T>& items, std::size_t count) {
  constexpr std::size_t kFew = 4096;
  if (items.size() + count <= items.capacity())
    return !is_over_;
  const std::size_t room =
      std::max(items.size() + count, items.size() + items.size() / 4 + kFew);
  if (!has_room(room * sizeof(T)))
    return false;
  items.reserve(room);
  return true;
}

void TreeBuilder::write_out() {
  while (!opened_.empty()) {
    if (!make_room(tree_.nodes, 1) || !make_room(opened_, 1)) {
      while (!opened_.empty())
        close();
      return;
    }
    Opened& innermost = opened_.back();
    if (innermost.next == innermost.end) {
      close();
      continue;
    }
    const TreeChild child = children_[innermost.next++];
    if (repeating_ > 0)
      ++repeated_;
    expand(child, innermost.node);
  }
}

void TreeBuilder::open(std::uint32_t node, std::size_t begin) {
  opened_.push_back(
      {tree_.nodes[node].value, node, begin, begin, children_.size()});
}

void TreeBuilder::close() {
  const Opened closed = opened_.back();
  opened_.pop_back();
  children_.resize(closed.begin);
  tree_.close(closed.node);
  const void* const identity = closed.value.identity();
  if (identity == nullptr)  // an empty tuple
    return;
  std::uint32_t& open = open_[identity];
  if (open == 2)
    --repeating_;
  open = 0;
}

// TorchScript wraps a list in a call that states its type. The chain of such
// calls is finite, as arguments exist before the call.
Value TreeBuilder::unwrapped(Value value) {
  while (call_that_made(value) == KnownCall::kSameAsArgument) {
    const std::span<const Value> arguments =
        tuple_items(value.object().arguments);
    if (arguments.empty())
      break;
    value = arguments[0];
  }
  return value;
}

void TreeBuilder::expand(const TreeChild& wrapped, std::uint32_t parent) {
  const TreeChild child{wrapped.key, unwrapped(wrapped.value)};
  const Value& value = child.value;
  const std::size_t begin = children_.size();
  switch (value.kind()) {
    case Kind::kDict:
      if (const std::uint32_t node =
              open_container(child, parent, NodeKind::kDict);
          node != kNoIndex) {
        add_pairs(value.pairs());
        open(node, begin);
      }
      return;
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kSet:
    case Kind::kFrozenSet: {
      const NodeKind kind = value.is(Kind::kList)    ? NodeKind::kList
                            : value.is(Kind::kTuple) ? NodeKind::kTuple
                                                     : NodeKind::kSet;
      const std::uint32_t node = open_container(child, parent, kind);
      if (node == kNoIndex)
        return;
      if (value.is(Kind::kFrozenSet))
        tree_.nodes[node].type = "frozenset";
      add_items(value.items());
      open(node, begin);
      return;
    }
    case Kind::kObject: {
      const KnownCall call = call_that_made(value);
      if (!makes_tensor(call) || !expand_tensor(child, parent, call))
        expand_object(child, parent, call);
      return;
    }
    case Kind::kPersistent:
      if (!expand_persistent(child, parent))
        add_value(child, parent);
      return;
    default:
      add_value(child, parent);
  }
}

void TreeBuilder::add_value(const TreeChild& child, std::uint32_t parent) {
  const std::uint32_t node = tree_.add(parent, child.key, NodeKind::kValue);
  tree_.nodes[node].value = child.value;
}

std::uint32_t TreeBuilder::open_container(const TreeChild& child,
                                          std::uint32_t parent, NodeKind kind) {
  const void* const identity = child.value.identity();
  const std::uint32_t node = tree_.add(parent, child.key, kind);
  tree_.nodes[node].value = child.value;
  if (identity == nullptr)  // an empty tuple
    return node;
  std::uint32_t& first = first_[identity];
  const bool again = first != 0;
  const bool cycle = open_.find(identity) != 0;
  if (cycle || (again && repeated_ > kMostRepeated)) {
    tree_.nodes[node].kind = NodeKind::kReference;
    tree_.nodes[node].index = first - 1;
    return kNoIndex;
  }
  if (again)
    ++repeating_;
  else
    first = node + 1;
  open_[identity] = again ? 2 : 1;
  return node;
}

Key TreeBuilder::key_of(const Value& value) {
  switch (value.kind()) {
    case Kind::kString:
    case Kind::kLegacyString:
      return Key::string(value.text());
    case Kind::kInteger:
      return Key::integer(value.integer());
    default:
      return Key::other(tree_.keep(value_repr(value)));
  }
}

// Of pairs with the same key the last value counts, in the position of the
// first, as in Python.
void TreeBuilder::add_pairs(std::span<const Pair> pairs) {
  constexpr std::size_t kFewPairs = 8;  // not worth a table
  const bool few = pairs.size() <= kFewPairs;
  const std::size_t begin = children_.size();
  if (!make_room(children_, pairs.size()))
    return;
  HashIndex places;  // among the children that are added here
  if (!few)
    places.reserve(pairs.size());
  for (const Pair& pair : pairs) {
    const TreeChild child{key_of(pair.key), pair.value};
    const auto is_same = [&](std::size_t place) {
      return children_[begin + place].key == child.key;
    };
    const auto count = static_cast<std::uint32_t>(children_.size() - begin);
    std::uint32_t place = 0;
    if (few) {
      while (place < count && !is_same(place))
        ++place;
    } else {
      const std::uint64_t hash =
          hash_on(hash_text(child.key.text),
                  static_cast<std::uint64_t>(child.key.number));
      place = std::min(places.find_or_add(hash, count, is_same), count);
    }
    if (place == count)
      children_.push_back(child);
    else
      children_[begin + place].value = child.value;
  }
}

void TreeBuilder::add_items(std::span<const Value> items) {
  if (!make_room(children_, items.size()))
    return;
  for (std::size_t i = 0; i < items.size(); ++i)
    children_.push_back({Key::index(i), items[i]});
}

// A state is a dict of attributes, or a pair of such dicts for classes with
// slots; anything else is one attribute, __state__.
void TreeBuilder::add_state(const Value& state, std::vector<TreeChild>& to) {
  const auto add_attributes = [&](const Value& attributes) {
    for (const Pair& pair : attributes.pairs()) {
      Key key = key_of(pair.key);
      if (key.kind == Key::Kind::kString)
        key.kind = Key::Kind::kAttribute;
      to.push_back({key, pair.value});
    }
  };
  if (is_attributes(state)) {
    add_attributes(state);
    return;
  }
  const bool slots = state.is(Kind::kTuple) && state.items().size() == 2 &&
                     std::ranges::all_of(state.items(), [](const Value& part) {
                       return part.is(Kind::kNone) || is_attributes(part);
                     });
  if (!slots) {
    to.push_back({Key::attribute("__state__"), state});
    return;
  }
  for (const Value& part : state.items())
    if (is_attributes(part))
      add_attributes(part);
}

void TreeBuilder::expand_object(const TreeChild& child, std::uint32_t parent,
                                KnownCall call) {
  if (call == KnownCall::kPlain) {
    add_value(child, parent);
    return;
  }
  const Object& object = child.value.object();
  const std::span<const Value> arguments = tuple_items(object.arguments);
  const NodeKind kind =
      call == KnownCall::kDict || call == KnownCall::kDefaultDict ||
              call == KnownCall::kCounter
          ? NodeKind::kDict
      : call == KnownCall::kSet ? NodeKind::kSet
      : call == KnownCall::kList || call == KnownCall::kSameAsArgument
          ? NodeKind::kList
      : call == KnownCall::kSize ? NodeKind::kTuple
                                 : NodeKind::kObject;
  const std::size_t begin = children_.size();
  const std::uint32_t node = open_container(child, parent, kind);
  if (node == kNoIndex)
    return;
  if (object.callable.is(Kind::kGlobal)) {
    const Global& global = object.callable.global();
    const bool builtin =
        global.module == "builtins" || global.module == "__builtin__";
    const bool python = global.module == "collections" || builtin;
    const bool own = builtin && (global.name == "set" || global.name == "list");
    tree_.nodes[node].type =
        own      ? std::string_view()
        : python ? global.name
                 : tree_.keep(fmt::format("{}.{}", global.module, global.name));
  }
  // A dict or list given to the constructor is the contents; a default
  // factory is not.
  const bool contents = kind != NodeKind::kObject;
  if (contents && call != KnownCall::kDefaultDict && !arguments.empty()) {
    const Value& from = arguments[0];
    if (from.is(Kind::kDict))
      add_pairs(from.pairs());
    else if (from.is(Kind::kList) || from.is(Kind::kTuple) ||
             from.is(Kind::kSet))
      add_items(from.items());
  } else if (!contents && object.items().empty()) {
    add_items(arguments);
  } else if (!contents) {
    for (std::size_t i = 0; i < arguments.size(); ++i)
      children_.push_back(
          {Key::attribute(tree_.keep(fmt::format("__args__[{}]", i))),
           arguments[i]});
  }
  if (object.keywords().is(Kind::kDict))
    add_state(object.keywords(), children_);
  add_pairs(object.pairs());
  add_items(object.items());
  for (const Value& state : object.states())
    add_state(state, children_);
  open(node, begin);
}

bool TreeBuilder::expand_tensor(const TreeChild& child, std::uint32_t parent,
                                KnownCall call) {
  const Object& object = child.value.object();
  if (object.mark - 1 < made_.size() &&
      made_[object.mark - 1].object == &object) {
    add_tensor(child, parent, made_[object.mark - 1].tensor);
    return true;
  }
  TensorDescription description{tree_.tensors.emplace_back()};
  if (!describe_value(child.value, call, description, 0)) {
    tree_.tensors.pop_back();
    return false;
  }
  const auto tensor = static_cast<std::uint32_t>(tree_.tensors.size() - 1);
  made_.push_back({&object, tensor});
  object.mark = static_cast<std::uint32_t>(made_.size());
  const std::uint32_t node = add_tensor(child, parent, tensor);
  if (description.parts.empty())
    return true;
  // Its parts may refer back to it.
  tree_.nodes[node].value = child.value;
  open_[&object] = 1;
  const std::size_t begin = children_.size();
  children_.insert(children_.end(), description.parts.begin(),
                   description.parts.end());
  open(node, begin);
  return true;
}

bool TreeBuilder::expand_persistent(const TreeChild& child,
                                    std::uint32_t parent) {
  std::uint32_t& known = persistent_[child.value.identity()];
  if (known == 0 && tensor_resolver_)
    known = tensor_resolver_(child.value.persistent_id()) + 1;
  if (known == 0) {
    TensorDescription description{tree_.tensors.emplace_back()};
    if (!describe_value(child.value, KnownCall::kUnknown, description, 0)) {
      tree_.tensors.pop_back();
      return false;
    }
    known = static_cast<std::uint32_t>(tree_.tensors.size());
  }
  add_tensor(child, parent, known - 1);
  return true;
}

std::uint32_t TreeBuilder::add_tensor(const TreeChild& child,
                                      std::uint32_t parent,
                                      std::uint32_t tensor) {
  const std::uint32_t node = tree_.add(parent, child.key, NodeKind::kTensor);
  tree_.nodes[node].index = tensor;
  tree_.nodes[node].type = tree_.tensors[tensor].type;
  return node;
}

Result<> place(TreeBuilder& builder, const Value& root,
               const SourceContext& context) {
  const std::uint64_t most = context.checkpoint.memory_left();
  builder.limit(most);
  if (!context.items_only)
    builder.build(root, context.parent, context.key);
  else if (!builder.build_items(root, context.parent))
    return fail(ErrorKind::kCorrupt, "it holds no dict of tensors");
  if (builder.is_over())
    return fail(ErrorKind::kRefused,
                "its tree takes more than the {} bytes of memory allowed for a "
                "file of this size",
                most);
  return {};
}

}  // namespace postflight
