// numpy's arrays and scalars, whose bytes are inside the pickle.

#include <algorithm>
#include <string>

#include "base/utf8.h"
#include "checkpoint/torch/tree_builder.h"

namespace postflight {
namespace {

struct ArrayType {
  Dtype dtype;
  bool big_endian = false;
};

// numpy.dtype('f4', False, True) with the state (3, '<', subtype, names,
// fields, item size, alignment, flags).
std::optional<ArrayType> read_dtype(const Value& value) {
  if (!value.is(Kind::kObject))
    return std::nullopt;
  const Object& object = value.object();
  const std::span<const Value> arguments = tuple_items(object.arguments);
  if (arguments.empty() ||
      !(arguments[0].is(Kind::kString) || arguments[0].is(Kind::kLegacyString)))
    return std::nullopt;
  ArrayType type{dtype_of_numpy(arguments[0].text())};
  if (object.state_count == 0)
    return type;
  const std::span<const Value> state = tuple_items(object.states()[0]);
  if (state.size() >= 2 && state[1].is(Kind::kString))
    type.big_endian = state[1].text() == ">";
  return type;
}

}  // namespace

// Protocols before 3 have no bytes and write _codecs.encode(text, 'latin1').
std::uint32_t TreeBuilder::inside_storage(const Value& bytes, bool big_endian) {
  std::uint32_t& known = inside_[bytes.identity()];
  if (known != 0) {
    if (tree_.storages[known - 1].big_endian == big_endian)
      return known - 1;
    Storage other = tree_.storages[known - 1];
    other.big_endian = big_endian;
    tree_.storages.push_back(other);
    return static_cast<std::uint32_t>(tree_.storages.size() - 1);
  }
  Bytes inside;
  if (bytes.is(Kind::kBytes) || bytes.is(Kind::kByteArray) ||
      bytes.is(Kind::kLegacyString)) {
    inside = as_bytes(bytes.text());
  } else if (bytes.is(Kind::kObject)) {
    const Object& object = bytes.object();
    const std::span<const Value> arguments = tuple_items(object.arguments);
    if (call_of(object.callable) != KnownCall::kPlain)
      return kNoIndex;
    if (!arguments.empty()) {
      if (arguments[0].is(Kind::kBytes)) {
        inside = as_bytes(arguments[0].text());
      } else if (arguments[0].is(Kind::kString)) {
        std::string_view text = arguments[0].text();
        char* const room = tree_.arena.allocate_text(text.size());
        inside = as_bytes(std::string_view(room, write_latin1(text, room)));
        if (!text.empty())
          return kNoIndex;
      }
    }
  } else {
    return kNoIndex;
  }
  Storage& storage = tree_.storages.emplace_back();
  storage.inside = inside;
  storage.size = inside.size();
  storage.big_endian = big_endian;
  known = static_cast<std::uint32_t>(tree_.storages.size());
  return known - 1;
}

bool TreeBuilder::describe_array(const Object& object, KnownCall call,
                                 TensorDescription& to) {
  std::span<const Value> from = tuple_items(object.arguments);
  Value dtype;
  Value bytes;
  bool fortran = false;
  Tensor& tensor = to.tensor;
  std::span<const std::int64_t> shape;
  if (call == KnownCall::kNdarray) {
    if (object.state_count == 0)
      return false;
    from = tuple_items(object.states()[0]);
    if (from.size() < 5 || !numbers(from[1], shape) ||
        !from[3].is(Kind::kBoolean))
      return false;
    dtype = from[2];
    fortran = from[3].boolean();
    bytes = from[4];
  } else if (call == KnownCall::kScalar) {
    if (from.size() < 2)
      return false;
    dtype = from[0];
    bytes = from[1];
  } else {
    if (from.size() < 4 || !numbers(from[2], shape) ||
        !from[3].is(Kind::kString))
      return false;
    bytes = from[0];
    dtype = from[1];
    fortran = from[3].text() == "F";
  }
  const auto type = read_dtype(dtype);
  if (!type)
    return false;
  const std::uint32_t storage = inside_storage(bytes, type->big_endian);
  if (storage == kNoIndex)  // an array of objects has a list here
    return false;
  tensor.dtype = type->dtype;
  tensor.storage = storage;
  tensor.shape = shape;
  tensor.type = call == KnownCall::kScalar ? "numpy.generic" : "numpy.ndarray";
  std::int64_t* const stride = tree_.arena.allocate<std::int64_t>(shape.size());
  std::int64_t step = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::size_t at = fortran ? i : shape.size() - 1 - i;
    stride[at] = step;
    if (shape[at] > 0)
      step = checked_multiply(step, shape[at]).value_or(1);
  }
  tensor.stride = {stride, shape.size()};
  check(tensor, tree_.storages[storage].size);
  return true;
}

}  // namespace postflight
