#include "checkpoint/tree_builder.h"

#include <algorithm>

#include "checkpoint/hash_order.h"
#include "checkpoint/value_repr.h"

namespace postflight {
namespace {

// A container met again is written out again, so that every path to a tensor
// can be named; but a few hundred bytes can nest to billions of paths.
constexpr std::uint64_t kMostRepeated = 100'000;

bool is_attributes(const Value& state) {
  return state.is(Kind::kDict);
}

}  // namespace

void TreeBuilder::build(const Value& root, std::uint32_t parent,
                        const Key& key) {
  stack_.push_back({key, root, parent, kNoIndex});
  while (!stack_.empty()) {
    const TreeChild child = stack_.back();
    stack_.pop_back();
    if (child.closes == kNoIndex) {
      if (repeating_ > 0)
        ++repeated_;
      expand(child);
      continue;
    }
    tree_.close(child.closes);
    std::uint32_t& open = open_[child.value.identity()];
    if (open == 2)
      --repeating_;
    open = 0;
  }
}

bool TreeBuilder::build_items(const Value& root, std::uint32_t parent) {
  children_.clear();
  if (root.is(Kind::kDict))
    add_pairs(root.pairs());
  else if (root.is(Kind::kObject) &&
           call_of(root.object().callable) == KnownCall::kDict)
    add_pairs(root.object().pairs());
  else
    return false;
  for (const TreeChild& child : std::vector<TreeChild>(children_))
    build(child.value, parent, child.key);
  return true;
}

void TreeBuilder::expand(const TreeChild& child) {
  const Value& value = child.value;
  children_.clear();
  switch (value.kind()) {
    case Kind::kDict:
      if (const std::uint32_t node = open_container(child, NodeKind::kDict);
          node != kNoIndex) {
        add_pairs(value.pairs());
        push(node, children_);
      }
      return;
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kSet:
    case Kind::kFrozenSet: {
      const NodeKind kind = value.is(Kind::kList)    ? NodeKind::kList
                            : value.is(Kind::kTuple) ? NodeKind::kTuple
                                                     : NodeKind::kSet;
      const std::uint32_t node = open_container(child, kind);
      if (node == kNoIndex)
        return;
      if (value.is(Kind::kFrozenSet))
        tree_.nodes[node].type = "frozenset";
      add_items(value.items());
      push(node, children_);
      return;
    }
    case Kind::kObject:
      if (!expand_tensor(child))
        expand_object(child);
      return;
    case Kind::kPersistent:
      if (expand_tensor(child))
        return;
      break;
    default:
      break;
  }
  const std::uint32_t node =
      tree_.add(child.parent, child.key, NodeKind::kValue);
  tree_.nodes[node].value = value;
}

// Makes the node; kNoIndex if there is nothing to write out below it.
std::uint32_t TreeBuilder::open_container(const TreeChild& child,
                                          NodeKind kind) {
  const void* const identity = child.value.identity();
  const std::uint32_t node = tree_.add(child.parent, child.key, kind);
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

void TreeBuilder::push(std::uint32_t node,
                       std::span<const TreeChild> children) {
  const Value value = tree_.nodes[node].value;
  if (children.size() > 1)
    stack_.reserve(stack_.size() + children.size() + 1);
  if (value.identity() != nullptr)
    stack_.push_back({{}, value, 0, node});
  for (auto it = children.rbegin(); it != children.rend(); ++it) {
    stack_.push_back(*it);
    stack_.back().parent = node;
  }
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

// Of pairs with the same key the last value counts, at the place of the first
// one, as in Python.
void TreeBuilder::add_pairs(std::span<const Pair> pairs) {
  const std::size_t begin = children_.size();
  children_.reserve(begin + pairs.size());
  for (const Pair& pair : pairs)
    children_.push_back({key_of(pair.key), pair.value, 0, kNoIndex});
  const std::size_t count = children_.size() - begin;
  if (count < 2)
    return;
  struct Hashed {
    std::uint64_t hash;
    std::size_t index;
  };
  std::vector<Hashed> order(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Key& key = children_[begin + i].key;
    order[i] = {std::hash<std::string_view>()(key.text) +
                    static_cast<std::uint64_t>(key.number) +
                    static_cast<std::uint64_t>(key.kind),
                begin + i};
  }
  // Keys made to collide cost no more than a plain sort of them.
  sort_by_hash(order, [this](const Hashed& a, const Hashed& b) {
    if (a.hash != b.hash)
      return a.hash < b.hash;
    const Key& left = children_[a.index].key;
    const Key& right = children_[b.index].key;
    if (left == right)
      return a.index < b.index;
    if (left.kind != right.kind)
      return left.kind < right.kind;
    return left.number != right.number ? left.number < right.number
                                       : left.text < right.text;
  });
  bool repeated = false;
  for (std::size_t i = count; i-- > 1;) {
    TreeChild& one = children_[order[i].index];
    TreeChild& before = children_[order[i - 1].index];
    if (order[i].hash != order[i - 1].hash || !(one.key == before.key))
      continue;
    before.value = one.value;
    one.closes = 0;  // marks it for removal
    repeated = true;
  }
  if (repeated)
    std::erase_if(children_, [](const TreeChild& child) {
      return child.closes != kNoIndex;
    });
}

void TreeBuilder::add_items(std::span<const Value> items) {
  for (std::size_t i = 0; i < items.size(); ++i)
    children_.push_back({Key::index(i), items[i], 0, kNoIndex});
}

// A state is a dict of attributes, or a pair of such dicts for classes with
// slots; anything else is shown as what it is.
void TreeBuilder::add_state(const Value& state, std::vector<TreeChild>& to) {
  const auto add_attributes = [&](const Value& attributes) {
    for (const Pair& pair : attributes.pairs()) {
      Key key = key_of(pair.key);
      if (key.kind == Key::Kind::kString)
        key.kind = Key::Kind::kAttribute;
      to.push_back({key, pair.value, 0, kNoIndex});
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
    to.push_back({Key::attribute("__state__"), state, 0, kNoIndex});
    return;
  }
  for (const Value& part : state.items())
    if (is_attributes(part))
      add_attributes(part);
}

void TreeBuilder::expand_object(const TreeChild& child) {
  const Object& object = child.value.object();
  const KnownCall call = call_of(object.callable);
  const std::span<const Value> arguments = object.arguments.is(Kind::kTuple)
                                               ? object.arguments.items()
                                               : std::span<const Value>();
  if (call == KnownCall::kPlain) {
    const std::uint32_t node =
        tree_.add(child.parent, child.key, NodeKind::kValue);
    tree_.nodes[node].value = child.value;
    return;
  }
  const NodeKind kind =
      call == KnownCall::kDict || call == KnownCall::kDefaultDict ||
              call == KnownCall::kCounter
          ? NodeKind::kDict
      : call == KnownCall::kSet ? NodeKind::kSet
      : call == KnownCall::kList || call == KnownCall::kSameAsArgument
          ? NodeKind::kList
      : call == KnownCall::kSize ? NodeKind::kTuple
                                 : NodeKind::kObject;
  if (call == KnownCall::kSameAsArgument && !arguments.empty()) {
    // A list that TorchScript wraps to say its type. The chain of such calls
    // ends, for arguments exist before the call that they are given to.
    stack_.push_back({child.key, arguments[0], child.parent, kNoIndex});
    return;
  }
  const std::uint32_t node = open_container(child, kind);
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
           arguments[i], 0, kNoIndex});
  }
  if (object.keywords().is(Kind::kDict))
    add_state(object.keywords(), children_);
  add_pairs(object.pairs());
  add_items(object.items());
  for (const Value& state : object.states())
    add_state(state, children_);
  push(node, children_);
}

bool TreeBuilder::expand_tensor(const TreeChild& child) {
  const Value& value = child.value;
  const void* const identity = value.identity();
  std::uint32_t tensor = tensors_.find(identity);
  TensorDescription description;
  if (tensor == 0) {
    if (value.is(Kind::kPersistent) && tensor_resolver_) {
      const std::uint32_t found = tensor_resolver_(value.persistent_id());
      tensor = found == kNoIndex ? 0 : found + 1;
    }
    if (tensor == 0) {
      if (!describe_value(value, description, 0))
        return false;
      tree_.tensors.push_back(description.tensor);
      tensor = static_cast<std::uint32_t>(tree_.tensors.size());
    }
    tensors_[identity] = tensor;
  }
  const std::uint32_t node =
      tree_.add(child.parent, child.key, NodeKind::kTensor);
  tree_.nodes[node].index = tensor - 1;
  tree_.nodes[node].type = tree_.tensors[tensor - 1].type;
  if (description.parts.empty())
    return true;
  // Its parts may refer back to it.
  tree_.nodes[node].value = value;
  open_[identity] = 1;
  push(node, description.parts);
  return true;
}

}  // namespace postflight
