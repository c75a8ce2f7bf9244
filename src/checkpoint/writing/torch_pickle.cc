#include "checkpoint/writing/torch_pickle.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "pickle/writing/writer.h"

namespace postflight {
namespace {

// Which bytes a tensor is, so that tied ones stay tied.
auto elements_of(const Tensor& tensor, const Dtype& dtype) {
  return std::tuple(
      tensor.storage, tensor.offset, tensor.dtype.name, dtype.name,
      tensor.conjugated, tensor.negated,
      is_contiguous(tensor)
          ? std::vector<std::int64_t>()
          : std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end()),
      is_contiguous(tensor) ? std::vector<std::int64_t>()
                            : std::vector<std::int64_t>(tensor.stride.begin(),
                                                        tensor.stride.end()),
      tensor.elements());
}

class TensorPickler {
 public:
  explicit TensorPickler(Builder& builder) : builder_(builder) {}

  Value tensor(const Dtype& dtype, std::span<const std::int64_t> shape,
               std::uint64_t elements, std::size_t storage,
               std::string_view device, bool requires_grad) {
    const std::string_view storage_class = storage_name(dtype);
    const bool typed = !storage_class.empty();
    const std::uint64_t count = typed ? elements : elements * dtype.size;
    const Value id = builder_.persistent(builder_.tuple(
        {builder_.interned("storage"),
         typed ? builder_.global("torch", storage_class)
               : builder_.global("torch.storage", "UntypedStorage"),
         builder_.string(std::to_string(storage)), builder_.interned(device),
         builder_.integer(static_cast<std::int64_t>(count))}));
    std::vector<Value> arguments = {id,
                                    builder_.integer(0),
                                    numbers(shape),
                                    strides(shape),
                                    Builder::boolean(requires_grad),
                                    hooks()};
    if (!typed)
      arguments.push_back(builder_.global("torch", dtype.name));
    return builder_.reduce(
        builder_.global("torch._utils",
                        typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3"),
        builder_.tuple(arguments));
  }

  Value parameter(Value tensor, bool requires_grad) {
    return builder_.reduce(
        builder_.global("torch._utils", "_rebuild_parameter"),
        builder_.tuple({tensor, Builder::boolean(requires_grad), hooks()}));
  }

  Value ordered_dict() {
    return builder_.reduce(builder_.global("collections", "OrderedDict"),
                           builder_.tuple({}));
  }

 private:
  Value hooks() { return ordered_dict(); }

  Value numbers(std::span<const std::int64_t> from) {
    std::vector<Value> items;
    for (const std::int64_t number : from)
      items.push_back(builder_.integer(number));
    return builder_.tuple(items);
  }

  Value strides(std::span<const std::int64_t> shape) {
    std::vector<std::int64_t> strides(shape.size());
    std::int64_t step = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
      strides[i] = step;
      step *= std::max<std::int64_t>(shape[i], 1);
    }
    return numbers(strides);
  }

  Builder& builder_;
};

class TreePickler {
 public:
  TreePickler(const Checkpoint& checkpoint,
              std::span<const OutputTensor> tensors,
              const std::vector<bool>& kept)
      : checkpoint_(checkpoint),
        nodes_(checkpoint.nodes()),
        kept_(kept),
        made_(nodes_.size()),
        pickler_(builder_) {
    for (const OutputTensor& tensor : tensors)
      written_[tensor.node] = &tensor;
  }

  Result<TorchPickle> write() {
    if (nodes_.empty())
      return fail(ErrorKind::kUnsupported, "the checkpoint has no tree");
    number_storages();
    // Containers that can be filled later come first, so that a reference to
    // one from inside it, or from a place before it, finds it.
    for (std::uint32_t i = 0; i < nodes_.size(); ++i)
      if (is_kept(i))
        open(i);
    for (std::uint32_t i = static_cast<std::uint32_t>(nodes_.size()); i-- > 0;)
      if (is_kept(i))
        TRY(fill(i));
    pickle_.bytes = TRY(write_pickle(made_[0], {.protocol = 2}));
    return std::move(pickle_);
  }

 private:
  bool is_kept(std::uint32_t node) const {
    return kept_.empty() || kept_[node];
  }

  bool has_tensor_below(std::uint32_t node) const {
    for (std::uint32_t i = node + 1; i < nodes_[node].end; ++i)
      if (nodes_[i].kind == NodeKind::kTensor && is_kept(i))
        return true;
    return false;
  }

  bool is_ordered_dict(const Node& node) const {
    return node.type == "OrderedDict" || node.type == "collections.OrderedDict";
  }

  void number_storages() {
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      const auto found = written_.find(i);
      if (found == written_.end())
        continue;
      const OutputTensor& output = *found->second;
      const auto [at, fresh] = storage_of_.emplace(
          elements_of(*output.tensor, output.dtype), pickle_.storages.size());
      if (fresh)
        pickle_.storages.push_back(output);
      number_of_[i] = at->second;
    }
  }

  void open(std::uint32_t i) {
    const Node& node = nodes_[i];
    if (node.kind == NodeKind::kDict)
      made_[i] =
          is_ordered_dict(node) ? pickler_.ordered_dict() : builder_.dict();
    else if (node.kind == NodeKind::kList)
      made_[i] = builder_.list();
    else if (node.kind == NodeKind::kSet)
      made_[i] = builder_.set();
  }

  tl::unexpected<Error> refuse(std::uint32_t node, std::string_view why) const {
    return fail(ErrorKind::kUnsupported,
                "{}: {}; leave it out by --keys, or convert without changes",
                node == 0 ? "(root)" : checkpoint_.path_of(node), why);
  }

  Result<> fill(std::uint32_t i) {
    const Node& node = nodes_[i];
    switch (node.kind) {
      case NodeKind::kDict:
        return fill_dict(i);
      case NodeKind::kList:
      case NodeKind::kSet:
        return each_child(i, [&](std::uint32_t child) -> Result<> {
          builder_.append(made_[i], made_[child]);
          return {};
        });
      case NodeKind::kTuple:
        return fill_tuple(i);
      case NodeKind::kObject:
        if (has_tensor_below(i))
          return refuse(i, "an object with tensors inside cannot be rebuilt");
        made_[i] = node.value;
        return {};
      case NodeKind::kTensor:
        return fill_tensor(i);
      case NodeKind::kReference:
        if (made_[node.index].is(Kind::kNone))
          return refuse(i, "a shared tuple cannot be rebuilt");
        made_[i] = made_[node.index];
        return {};
      case NodeKind::kValue:
        made_[i] = node.value;
        return {};
    }
    return {};
  }

  template <class Visit>
  Result<> each_child(std::uint32_t container, Visit visit) {
    for (std::uint32_t at = container + 1; at < nodes_[container].end;
         at = nodes_[at].end)
      if (is_kept(at))
        TRY(visit(at));
    return {};
  }

  Result<> fill_dict(std::uint32_t i) {
    const Node& node = nodes_[i];
    bool other = false;
    TRY(each_child(i, [&](std::uint32_t child) -> Result<> {
      other |= nodes_[child].key.kind == Key::Kind::kOther;
      return {};
    }));
    const bool special = !node.type.empty() && !is_ordered_dict(node);
    if ((other || special) && !node.value.is(Kind::kNone)) {
      if (!has_tensor_below(i)) {
        made_[i] = node.value;
        return {};
      }
      return refuse(i, special ? "a dict of another class cannot be rebuilt"
                               : "its keys are neither texts nor integers");
    }
    TRY(each_child(i, [&](std::uint32_t child) -> Result<> {
      const Key& key = nodes_[child].key;
      if (key.kind == Key::Kind::kAttribute)  // which comes with the state
        return {};
      builder_.set_item(made_[i],
                        key.is_number() ? builder_.integer(key.number)
                                        : builder_.interned(key.text),
                        made_[child]);
      return {};
    }));
    // The versions of modules that state_dict() adds.
    if (is_ordered_dict(node) && node.value.is(Kind::kObject))
      for (const Value& state : node.value.object().states())
        builder_.add_state(made_[i], state);
    return {};
  }

  Result<> fill_tuple(std::uint32_t i) {
    if (!nodes_[i].type.empty()) {
      if (has_tensor_below(i))
        return refuse(i, "a tuple of a class cannot be rebuilt");
      made_[i] = nodes_[i].value;
      return {};
    }
    std::vector<Value> items;
    TRY(each_child(i, [&](std::uint32_t child) -> Result<> {
      items.push_back(made_[child]);
      return {};
    }));
    made_[i] = builder_.tuple(items);
    return {};
  }

  Result<> fill_tensor(std::uint32_t i) {
    const auto found = written_.find(i);
    if (found == written_.end())
      return refuse(i, "it has no bytes of its own that can be written");
    const OutputTensor& output = *found->second;
    const Tensor& tensor = *output.tensor;
    TRY(check_torch_dtype(output));
    if (nodes_[i].children > 0)
      return refuse(i, "a tensor with attributes cannot be rebuilt");
    made_[i] = pickler_.tensor(
        output.dtype, tensor.shape, tensor.elements(), number_of_[i],
        tensor.device,
        tensor.role == TensorRole::kTensor && tensor.requires_grad);
    if (tensor.role == TensorRole::kParameter)
      made_[i] = pickler_.parameter(made_[i], tensor.requires_grad);
    return {};
  }

 public:
  Result<> check_torch_dtype(const OutputTensor& output) const {
    if (output.dtype.packed == 1 && is_torch_dtype(output.dtype))
      return {};
    return refuse(output.node,
                  fmt::format("torch has no dtype {}", output.dtype.name));
  }

 private:
  const Checkpoint& checkpoint_;
  const std::span<const Node> nodes_;
  const std::vector<bool>& kept_;
  std::vector<Value> made_;  // by node
  Builder builder_;
  TensorPickler pickler_;
  TorchPickle pickle_;
  std::map<std::uint32_t, const OutputTensor*> written_;  // by node
  std::map<std::uint32_t, std::size_t> number_of_;        // by node
  std::map<decltype(elements_of(Tensor(), Dtype())), std::size_t> storage_of_;
};

}  // namespace

std::uint64_t OutputTensor::bytes() const {
  Tensor written = *tensor;
  written.dtype = dtype;
  return written.bytes();
}

Result<TorchPickle> pickle_tree(const Checkpoint& checkpoint,
                                std::span<const OutputTensor> tensors,
                                const std::vector<bool>& kept) {
  return TreePickler(checkpoint, tensors, kept).write();
}

Result<TorchPickle> pickle_state_dict(const Checkpoint& checkpoint,
                                      std::span<const OutputTensor> tensors) {
  TorchPickle pickle;
  Builder builder;
  TensorPickler pickler(builder);
  const TreePickler checker(checkpoint, {}, {});
  std::map<decltype(elements_of(Tensor(), Dtype())), std::size_t> storages;
  const Value root = pickler.ordered_dict();
  for (const OutputTensor& output : tensors) {
    TRY(checker.check_torch_dtype(output));
    const Tensor& tensor = *output.tensor;
    const auto [at, fresh] = storages.emplace(elements_of(tensor, output.dtype),
                                              pickle.storages.size());
    if (fresh)
      pickle.storages.push_back(output);
    Value made = pickler.tensor(
        output.dtype, tensor.shape, tensor.elements(), at->second,
        tensor.device,
        tensor.role == TensorRole::kTensor && tensor.requires_grad);
    if (tensor.role == TensorRole::kParameter)
      made = pickler.parameter(made, tensor.requires_grad);
    builder.set_item(root, output.name, made);
  }
  pickle.bytes = TRY(write_pickle(root, {.protocol = 2}));
  return pickle;
}

Result<std::string> pickle_tensor(const Dtype& dtype,
                                  std::span<const std::int64_t> shape,
                                  bool requires_grad) {
  Builder builder;
  std::uint64_t elements = 1;
  for (const std::int64_t size : shape)
    elements *= static_cast<std::uint64_t>(size);
  return write_pickle(TensorPickler(builder).tensor(dtype, shape, elements, 0,
                                                    "cpu", requires_grad),
                      {.protocol = 2});
}

Result<std::string> pickle_value(const Value& value) {
  return write_pickle(value, {.protocol = 2});
}

}  // namespace postflight
