#include "checkpoint/torch/exported_weights.h"

#include <optional>
#include <utility>

#include "json/json_value.h"

namespace postflight {
namespace {

// The numbers of dtypes in exported programs.
Dtype exported_dtype(std::int64_t number) {
  constexpr std::pair<std::int64_t, std::string_view> kNames[] = {
      {1, "uint8"},
      {2, "int8"},
      {3, "int16"},
      {4, "int32"},
      {5, "int64"},
      {6, "float16"},
      {7, "float32"},
      {8, "float64"},
      {9, "complex32"},
      {10, "complex64"},
      {11, "complex128"},
      {12, "bool"},
      {13, "bfloat16"},
      {28, "uint16"},
      {29, "float8_e4m3fn"},
      {30, "float8_e5m2"},
      {31, "float8_e4m3fnuz"},
      {32, "float8_e5m2fnuz"}};
  for (const auto& [known, name] : kNames)
    if (known == number)
      return dtype_named(name);
  return {};
}

std::optional<std::int64_t> integer_in(const Value* value) {
  if (value != nullptr && value->is(Kind::kDict))
    value = value->find("as_int");
  if (value == nullptr || !value->is(Kind::kInteger))
    return std::nullopt;
  return value->integer();
}

bool read_integers(const Value* list, std::vector<std::int64_t>& into) {
  if (list == nullptr || !list->is(Kind::kList))
    return false;
  for (const Value& item : list->items()) {
    const std::optional<std::int64_t> number = integer_in(&item);
    if (!number)
      return false;
    into.push_back(*number);
  }
  return true;
}

bool is_true(const Value* value) {
  return value != nullptr && value->is(Kind::kBoolean) && value->boolean();
}

std::string_view text_in(const Value* value) {
  return value != nullptr && value->is(Kind::kString) ? value->text()
                                                      : std::string_view();
}

Result<ExportedWeight> read_weight(const Pair& pair) {
  ExportedWeight weight;
  weight.name = pair.key.text();
  const Value* const meta =
      pair.value.is(Kind::kDict) ? pair.value.find("tensor_meta") : nullptr;
  if (meta == nullptr || !meta->is(Kind::kDict))
    return fail(ErrorKind::kCorrupt, "tensor '{}' has no tensor_meta",
                weight.name);
  weight.record = text_in(pair.value.find("path_name"));
  weight.pickled = is_true(pair.value.find("use_pickle"));
  if (is_true(pair.value.find("is_param")))
    weight.role = TensorRole::kParameter;
  const std::optional<std::int64_t> dtype = integer_in(meta->find("dtype"));
  const std::optional<std::int64_t> offset =
      integer_in(meta->find("storage_offset"));
  if (weight.record.empty() || !dtype || !offset ||
      !read_integers(meta->find("sizes"), weight.shape) ||
      !read_integers(meta->find("strides"), weight.stride) ||
      weight.shape.size() != weight.stride.size())
    return fail(ErrorKind::kCorrupt,
                "tensor '{}' lacks its record, dtype, sizes, strides or offset",
                weight.name);
  weight.dtype = exported_dtype(*dtype);
  weight.offset = *offset;
  weight.requires_grad = is_true(meta->find("requires_grad"));
  if (const Value* const device = meta->find("device");
      device != nullptr && device->is(Kind::kDict))
    if (const std::string_view type = text_in(device->find("type"));
        !type.empty())
      weight.device = type;
  return weight;
}

}  // namespace

Result<std::vector<ExportedWeight>> read_exported_weights(Bytes json,
                                                          Builder& builder) {
  const Value root = TRY(parse_json(json, builder));
  const Value* const config =
      root.is(Kind::kDict) ? root.find("config") : nullptr;
  if (config == nullptr || !config->is(Kind::kDict))
    return fail(ErrorKind::kCorrupt, "it has no object called config");
  std::vector<ExportedWeight> weights;
  for (const Pair& pair : config->pairs())
    weights.push_back(TRY(read_weight(pair)));
  return weights;
}

}  // namespace postflight
