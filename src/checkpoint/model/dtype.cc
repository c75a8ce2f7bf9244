#include "checkpoint/model/dtype.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace postflight {
namespace {

struct Row {
  Dtype dtype;
  std::string_view storage;
  std::string_view safetensors;
  std::string_view numpy;
};

using enum Numeric;

constexpr std::array kRows = {
    Row{{"float32", 4, 4, kFloat}, "FloatStorage", "F32", "f4"},
    Row{{"bfloat16", 2, 2, kBfloat16}, "BFloat16Storage", "BF16", ""},
    Row{{"float16", 2, 2, kFloat}, "HalfStorage", "F16", "f2"},
    Row{{"float64", 8, 8, kFloat}, "DoubleStorage", "F64", "f8"},
    Row{{"int64", 8, 8, kSigned}, "LongStorage", "I64", "i8"},
    Row{{"int32", 4, 4, kSigned}, "IntStorage", "I32", "i4"},
    Row{{"int16", 2, 2, kSigned}, "ShortStorage", "I16", "i2"},
    Row{{"int8", 1, 1, kSigned}, "CharStorage", "I8", "i1"},
    Row{{"uint8", 1, 1, kUnsigned}, "ByteStorage", "U8", "u1"},
    Row{{"bool", 1, 1, kBoolean}, "BoolStorage", "BOOL", "b1"},
    Row{{"uint16", 2, 2, kUnsigned}, "", "U16", "u2"},
    Row{{"uint32", 4, 4, kUnsigned}, "", "U32", "u4"},
    Row{{"uint64", 8, 8, kUnsigned}, "", "U64", "u8"},
    Row{{"complex64", 8, 4, kComplex}, "ComplexFloatStorage", "C64", "c8"},
    Row{{"complex128", 16, 8, kComplex}, "ComplexDoubleStorage", "", "c16"},
    Row{{"complex32", 4, 2, kComplex}, "ComplexHalfStorage", "", ""},
    Row{{"float8_e5m2", 1, 1, kFloat8E5m2}, "", "F8_E5M2", ""},
    Row{{"float8_e4m3fn", 1, 1, kFloat8E4m3fn}, "", "F8_E4M3", ""},
    Row{{"float8_e5m2fnuz", 1, 1, kFloat8E5m2fnuz}, "", "F8_E5M2FNUZ", ""},
    Row{{"float8_e4m3fnuz", 1, 1, kFloat8E4m3fnuz}, "", "F8_E4M3FNUZ", ""},
    Row{{"float8_e8m0fnu", 1, 1, kFloat8E8m0fnu}, "", "F8_E8M0", ""},
    Row{{"float4_e2m1fn_x2", 1, 1, kOpaque}, "", "", ""},
    // safetensors' own packed types, which torch has no name for.
    Row{{"F4", 1, 1, kOpaque, 2}, "", "F4", ""},
    Row{{"F6_E2M3", 3, 1, kOpaque, 4}, "", "F6_E2M3", ""},
    Row{{"F6_E3M2", 3, 1, kOpaque, 4}, "", "F6_E3M2", ""},
    Row{{"qint8", 1, 1, kSigned}, "QInt8Storage", "", ""},
    Row{{"quint8", 1, 1, kUnsigned}, "QUInt8Storage", "", ""},
    Row{{"qint32", 4, 4, kSigned}, "QInt32Storage", "", ""},
    Row{{"quint4x2", 1, 1, kOpaque, 2}, "QUInt4x2Storage", "", ""},
    Row{{"quint2x4", 1, 1, kOpaque, 4}, "QUInt2x4Storage", "", ""},
    Row{{"bits8", 1, 1, kOpaque}, "", "", ""},
    Row{{"bits16", 2, 2, kOpaque}, "", "", ""},
    Row{{"bits1x8", 1, 1, kOpaque}, "", "", ""},
    Row{{"bits2x4", 1, 1, kOpaque}, "", "", ""},
    Row{{"bits4x2", 1, 1, kOpaque}, "", "", ""},
    Row{{"int1", 1, 1, kOpaque}, "", "", ""},
    Row{{"int2", 1, 1, kOpaque}, "", "", ""},
    Row{{"int3", 1, 1, kOpaque}, "", "", ""},
    Row{{"int4", 1, 1, kOpaque}, "", "", ""},
    Row{{"int5", 1, 1, kOpaque}, "", "", ""},
    Row{{"int6", 1, 1, kOpaque}, "", "", ""},
    Row{{"int7", 1, 1, kOpaque}, "", "", ""},
    Row{{"uint1", 1, 1, kOpaque}, "", "", ""},
    Row{{"uint2", 1, 1, kOpaque}, "", "", ""},
    Row{{"uint3", 1, 1, kOpaque}, "", "", ""},
    Row{{"uint4", 1, 1, kOpaque}, "", "", ""},
    Row{{"uint5", 1, 1, kOpaque}, "", "", ""},
    Row{{"uint6", 1, 1, kOpaque}, "", "", ""},
    Row{{"uint7", 1, 1, kOpaque}, "", "", ""},
};

template <class Projection>
const Row* find(std::string_view name, Projection projection) {
  const auto row = std::ranges::find(kRows, name, projection);
  return row == kRows.end() || name.empty() ? nullptr : &*row;
}

std::string_view dtype_name(const Row& row) {
  return row.dtype.name;
}

}  // namespace

Dtype dtype_named(std::string_view name) {
  const Row* const row = find(name, dtype_name);
  return row != nullptr ? row->dtype : Dtype{.name = name};
}

const Dtype* dtype_of_storage(std::string_view class_name) {
  const Row* const row = class_name == "UntypedStorage"
                             ? find("uint8", dtype_name)
                             : find(class_name, &Row::storage);
  return row != nullptr ? &row->dtype : nullptr;
}

bool is_torch_dtype(const Dtype& dtype) {
  const Row* const row = find(dtype.name, dtype_name);
  // The others are named as safetensors names them.
  return row != nullptr && row->safetensors != dtype.name;
}

std::string_view storage_name(const Dtype& dtype) {
  const Row* const row = find(dtype.name, dtype_name);
  return row != nullptr ? row->storage : std::string_view();
}

std::optional<Dtype> dtype_of_safetensors(std::string_view name) {
  const Row* const row = find(name, &Row::safetensors);
  return row != nullptr ? std::optional(row->dtype) : std::nullopt;
}

std::string_view safetensors_name(const Dtype& dtype) {
  const Row* const row = find(dtype.name, dtype_name);
  return row != nullptr ? row->safetensors : std::string_view();
}

std::string_view numpy_name(const Dtype& dtype) {
  const Row* const row = find(dtype.name, dtype_name);
  return row != nullptr ? row->numpy : std::string_view();
}

Dtype dtype_of_numpy(std::string_view kind_and_size) {
  if (const Row* const row = find(kind_and_size, &Row::numpy))
    return row->dtype;
  Dtype made{.name = kind_and_size};
  std::uint32_t size = 0;
  if (kind_and_size.size() < 2)
    return made;
  const char* const digits = kind_and_size.data() + 1;
  const char* const end = kind_and_size.data() + kind_and_size.size();
  if (std::from_chars(digits, end, size).ptr != end)
    return made;
  constexpr std::uint32_t kMostBytes = 1 << 28;  // of one text element
  if (size > kMostBytes)
    return made;
  // Text is counted in characters of four bytes each.
  const bool text = kind_and_size.front() == 'U';
  made.size = text ? size * 4 : size;
  const char kind = kind_and_size.front();
  made.swap = text ? 4 : kind == 'm' || kind == 'M' ? size : 1;
  return made;
}

}  // namespace postflight
