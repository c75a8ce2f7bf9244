// What torch's rebuilding functions tell about a tensor. Each is recognised by
// name and interpreted from its arguments; a call with other arguments than
// torch writes remains an unknown object.

#include <algorithm>

#include "checkpoint/torch/tree_builder.h"

namespace postflight {
namespace {

std::optional<std::uint64_t> size_of(const Value& value) {
  if (!value.is(Kind::kInteger) || value.integer() < 0)
    return std::nullopt;
  return static_cast<std::uint64_t>(value.integer());
}

bool is_true(const Value& value) {
  return value.is(Kind::kBoolean) && value.boolean();
}

bool truth(std::span<const Value> arguments, std::size_t index) {
  return index < arguments.size() && is_true(arguments[index]);
}

std::optional<Dtype> dtype_value(const Value& value) {
  if (!value.is(Kind::kGlobal) || value.global().module != "torch")
    return std::nullopt;
  return dtype_named(value.global().name);
}

// The one text among a call's arguments: torch.device('cpu'), _get_layout(..).
std::string_view text_argument(const Value& value) {
  if (value.is(Kind::kString))
    return value.text();
  if (!value.is(Kind::kObject))
    return {};
  const std::span<const Value> arguments =
      tuple_items(value.object().arguments);
  return !arguments.empty() && arguments[0].is(Kind::kString)
             ? arguments[0].text()
             : std::string_view();
}

constexpr int kMostWrappings = 8;  // of a tensor inside calls about it

void add_part(TensorDescription& to, std::string_view name,
              const Value& value) {
  to.parts.push_back({Key::attribute(name), value});
}

}  // namespace

KnownCall TreeBuilder::call_of(const Value& callable) {
  if (!callable.is(Kind::kGlobal))
    return KnownCall::kUnknown;
  const Global* const global = &callable.global();
  if (global == last_global_)
    return last_call_;
  std::uint32_t& known = calls_[global];
  if (known == 0)
    known = static_cast<std::uint32_t>(known_call(*global)) + 1;
  last_global_ = global;
  last_call_ = static_cast<KnownCall>(known - 1);
  return last_call_;
}

bool TreeBuilder::numbers(const Value& value,
                          std::span<const std::int64_t>& to) {
  Value tuple = value;
  if (value.is(Kind::kObject) &&
      call_of(value.object().callable) == KnownCall::kSize &&
      tuple_items(value.object().arguments).size() == 1)
    tuple = tuple_items(value.object().arguments)[0];
  if (!tuple.is(Kind::kTuple) && !tuple.is(Kind::kList))
    return false;
  const std::span<const Value> items = tuple.items();
  std::int64_t* const kept = tree_.arena.allocate<std::int64_t>(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].is(Kind::kInteger))
      return false;
    kept[i] = items[i].integer();
  }
  to = {kept, items.size()};
  return true;
}

bool TreeBuilder::attach(const Value& persistent, TensorDescription& to,
                         StorageReference& reference) {
  if (!persistent.is(Kind::kPersistent))
    return false;
  const std::uint32_t storage =
      resolver_(persistent.persistent_id(), reference);
  if (storage == kNoIndex)
    return false;
  to.tensor.storage = storage;
  to.tensor.device = reference.device;
  to.tensor.dtype = reference.dtype;
  return true;
}

void TreeBuilder::check(Tensor& tensor, std::uint64_t available) {
  if (tensor.storage == kNoIndex)
    return;
  const Storage& storage = tree_.storages[tensor.storage];
  if (!storage.problem.empty()) {
    tensor.problem = storage.problem;
    return;
  }
  std::string problem = check_bounds(tensor, std::min(available, storage.size));
  if (problem.empty() && tensor.dtype.known())
    return;
  if (problem.empty() && tensor.offset == 0) {
    // A dtype newer than this program: its bytes can be read if only one
    // element size fits.
    const std::uint64_t elements = tensor.elements();
    constexpr std::uint64_t kLargestElement = 64;
    if (elements > 0 && is_contiguous(tensor) && available % elements == 0 &&
        available / elements <= kLargestElement) {
      tensor.dtype.size = static_cast<std::uint32_t>(available / elements);
      problem = check_bounds(tensor, std::min(available, storage.size));
    }
  }
  if (problem.empty() && !tensor.dtype.known() && tensor.elements() > 0)
    problem = fmt::format("the size of a {} is not known", tensor.dtype.name);
  if (!problem.empty())
    tensor.problem = tree_.keep(problem);
}

bool TreeBuilder::describe_value(const Value& value, KnownCall call,
                                 TensorDescription& to, int depth) {
  if (depth > kMostWrappings)
    return false;
  if (value.is(Kind::kPersistent)) {
    StorageReference reference;
    if (!attach(value, to, reference))
      return false;
    const auto count = static_cast<std::int64_t>(
        reference.bytes / std::max(1U, reference.dtype.size));
    const std::int64_t one = 1;
    to.tensor.shape = tree_.keep(std::span(&count, 1));
    to.tensor.stride = tree_.keep(std::span(&one, 1));
    to.tensor.offset = reference.view_offset;
    check(to.tensor, tree_.storages[to.tensor.storage].size);
    to.tensor.type = "Storage";
    return true;
  }
  if (!value.is(Kind::kObject))
    return false;
  const Object& object = value.object();
  switch (call) {
    case KnownCall::kNdarray:
    case KnownCall::kScalar:
    case KnownCall::kFromBuffer:
      return describe_array(object, call, to);
    case KnownCall::kShardedTensor:
      return describe_sharded(object, to);
    default:
      break;
  }
  if (!describe(call, tuple_items(object.arguments), to, depth))
    return false;
  for (const Value& state : object.states())
    add_state(state, to.parts);
  return true;
}

bool TreeBuilder::describe(KnownCall call, std::span<const Value> arguments,
                           TensorDescription& to, int depth) {
  switch (call) {
    case KnownCall::kTensor:
    case KnownCall::kTensorV3:
    case KnownCall::kQuantized:
      return describe_strided(call, arguments, to);
    case KnownCall::kParameter:
      if (arguments.size() < 2 || !describe_inner(arguments[0], to, depth))
        return false;
      to.tensor.role = TensorRole::kParameter;
      to.tensor.requires_grad = is_true(arguments[1]);
      if (arguments.size() > 3)
        add_state(arguments[3], to.parts);
      return true;
    case KnownCall::kFromType:
      return describe_from_type(arguments, to, depth);
    case KnownCall::kSparse:
      return describe_sparse(arguments, to, depth);
    case KnownCall::kNested: {
      Tensor within;
      TensorDescription buffer{within};
      if (arguments.size() != 4 || !describe_inner(arguments[0], buffer, depth))
        return false;
      constexpr std::string_view kNames[] = {"buffer", "sizes", "strides",
                                             "offsets"};
      for (std::size_t i = 0; i < 4; ++i)
        add_part(to, kNames[i], arguments[i]);
      to.tensor.dtype = buffer.tensor.dtype;
      to.tensor.device = buffer.tensor.device;
      to.tensor.layout = "nested";
      to.tensor.shape_known = false;
      return true;
    }
    case KnownCall::kJagged: {
      if (arguments.size() != 1 || !arguments[0].is(Kind::kDict))
        return false;
      add_state(arguments[0], to.parts);
      Tensor within;
      TensorDescription values{within};
      if (const Value* const found = arguments[0].find("values");
          found != nullptr && describe_inner(*found, values, depth)) {
        to.tensor.dtype = values.tensor.dtype;
        to.tensor.device = values.tensor.device;
      }
      to.tensor.layout = "jagged";
      to.tensor.shape_known = false;
      return true;
    }
    case KnownCall::kMeta: {
      const auto dtype =
          arguments.size() >= 4 ? dtype_value(arguments[0]) : std::nullopt;
      if (!dtype || !numbers(arguments[1], to.tensor.shape) ||
          !numbers(arguments[2], to.tensor.stride))
        return false;
      to.tensor.dtype = *dtype;
      to.tensor.device = "meta";
      to.tensor.requires_grad = is_true(arguments[3]);
      return true;
    }
    case KnownCall::kFromCpu:
      if (arguments.size() < 4 || !describe_inner(arguments[0], to, depth))
        return false;
      if (const auto device = text_argument(arguments[2]); !device.empty())
        to.tensor.device = device;
      to.tensor.requires_grad = is_true(arguments[3]);
      return true;
    case KnownCall::kWrapper: {
      const auto dtype =
          arguments.size() >= 8 ? dtype_value(arguments[1]) : std::nullopt;
      if (!dtype || !arguments[0].is(Kind::kGlobal) ||
          !numbers(arguments[2], to.tensor.shape) ||
          !numbers(arguments[3], to.tensor.stride))
        return false;
      to.tensor.dtype = *dtype;
      to.tensor.layout = arguments[0].global().name;
      if (const auto device = text_argument(arguments[6]); !device.empty())
        to.tensor.device = device;
      to.tensor.requires_grad = is_true(arguments[7]);
      return true;
    }
    default:
      return false;
  }
}

bool TreeBuilder::describe_strided(KnownCall call,
                                   std::span<const Value> arguments,
                                   TensorDescription& to) {
  const std::size_t fewest = call == KnownCall::kTensor     ? 4
                             : call == KnownCall::kTensorV3 ? 7
                                                            : 6;
  StorageReference reference;
  if (arguments.size() < fewest || !attach(arguments[0], to, reference))
    return false;
  Tensor& tensor = to.tensor;
  const auto offset = size_of(arguments[1]);
  const auto moved =
      offset ? checked_add(*offset, reference.view_offset) : std::nullopt;
  if (!moved || !numbers(arguments[2], tensor.shape) ||
      !numbers(arguments[3], tensor.stride))
    return false;
  tensor.offset = *moved;
  if (call == KnownCall::kTensorV3) {
    const auto dtype = dtype_value(arguments[6]);
    if (!dtype)
      return false;
    tensor.dtype = *dtype;
  }
  if (call == KnownCall::kQuantized) {
    const std::span<const Value> how = tuple_items(arguments[4]);
    tensor.requires_grad = is_true(arguments[5]);
    constexpr std::string_view kWhole[] = {"qscheme", "scale", "zero_point"};
    constexpr std::string_view kChannels[] = {"qscheme", "scales",
                                              "zero_points", "axis"};
    for (std::size_t i = 0; i < how.size() && i < 4; ++i)
      add_part(to, how.size() > 3 ? kChannels[i] : kWhole[i], how[i]);
  } else {
    tensor.requires_grad = truth(arguments, 4);
    const std::size_t metadata = call == KnownCall::kTensor ? 6 : 7;
    if (arguments.size() > metadata && arguments[metadata].is(Kind::kDict)) {
      const Value* const conj = arguments[metadata].find("conj");
      const Value* const neg = arguments[metadata].find("neg");
      tensor.conjugated = conj != nullptr && is_true(*conj) &&
                          tensor.dtype.numeric == Numeric::kComplex;
      tensor.negated = neg != nullptr && is_true(*neg);
    }
  }
  // The size in the pickle was compared with the record when the storage was
  // resolved; a tensor must stay inside both.
  const auto view = checked_multiply(reference.view_offset,
                                     std::uint64_t{reference.dtype.size});
  const auto end = view ? checked_add(*view, reference.bytes) : std::nullopt;
  check(tensor, end.value_or(0));
  return true;
}

bool TreeBuilder::describe_from_type(std::span<const Value> arguments,
                                     TensorDescription& to, int depth) {
  if (arguments.size() < 3 || !arguments[1].is(Kind::kGlobal))
    return false;
  if (depth > kMostWrappings ||
      !describe(call_of(arguments[0]), tuple_items(arguments[2]), to,
                depth + 1))
    return false;
  const Global& type = arguments[1].global();
  if (type.name == "Parameter")
    to.tensor.role = TensorRole::kParameter;
  else if (!(type.module == "torch" && type.name == "Tensor"))
    to.tensor.type = tree_.keep(fmt::format("{}.{}", type.module, type.name));
  if (arguments.size() < 4 || arguments[3].is(Kind::kNone))
    return true;
  const Value& state = arguments[3];
  const Value& attributes =
      tuple_items(state).size() == 2 ? state.items()[0] : state;
  if (attributes.is(Kind::kDict)) {
    const Value* const buffer = attributes.find("_is_buffer");
    if (buffer != nullptr && is_true(*buffer))
      to.tensor.role = TensorRole::kBuffer;
  }
  add_state(state, to.parts);
  return true;
}

bool TreeBuilder::describe_sparse(std::span<const Value> arguments,
                                  TensorDescription& to, int depth) {
  if (arguments.size() < 2)
    return false;
  std::string_view layout = text_argument(arguments[0]);
  if (layout.starts_with("torch."))
    layout.remove_prefix(6);
  const std::span<const Value> parts = tuple_items(arguments[1]);
  const bool coo = layout == "sparse_coo";
  const std::size_t values = coo ? 1 : 2;
  Tensor within;
  TensorDescription of_values{within};
  if (layout.empty() || parts.size() < values + 2 ||
      !describe_inner(parts[values], of_values, depth) ||
      !numbers(parts[values + 1], to.tensor.shape))
    return false;
  const bool by_row = layout == "sparse_csr" || layout == "sparse_bsr";
  if (coo) {
    add_part(to, "indices", parts[0]);
  } else {
    add_part(to, by_row ? "crow_indices" : "ccol_indices", parts[0]);
    add_part(to, by_row ? "col_indices" : "row_indices", parts[1]);
  }
  add_part(to, "values", parts[values]);
  if (coo && parts.size() > 3)
    add_part(to, "is_coalesced", parts[3]);
  to.tensor.layout = layout;
  to.tensor.dtype = of_values.tensor.dtype;
  to.tensor.device = of_values.tensor.device;
  return true;
}

// FSDP's: state is (local shards, metadata, group state, sharding, ...), and
// the metadata's own state is a dict with the whole tensor's size.
bool TreeBuilder::describe_sharded(const Object& object,
                                   TensorDescription& to) {
  if (object.state_count != 1)
    return false;
  const std::span<const Value> state = tuple_items(object.state);
  if (state.size() < 4)
    return false;
  constexpr std::string_view kNames[] = {"local_shards", "metadata",
                                         "process_group", "sharding_spec"};
  for (std::size_t i = 0; i < 4; ++i)
    add_part(to, kNames[i], state[i]);
  to.tensor.layout = "ShardedTensor";
  to.tensor.shape_known = false;
  if (state[1].is(Kind::kObject) && state[1].object().state_count > 0 &&
      state[1].object().states()[0].is(Kind::kDict)) {
    const Value& metadata = state[1].object().states()[0];
    const Value* const size = metadata.find("size");
    to.tensor.shape_known = size != nullptr && numbers(*size, to.tensor.shape);
  }
  return true;
}

}  // namespace postflight
