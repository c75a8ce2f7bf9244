#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

namespace postflight {

// How the bytes of an element represent a number.
enum class Numeric : std::uint8_t {
  kOpaque,  // bits, packed quantized values, text: just bytes
  kBoolean,
  kSigned,
  kUnsigned,
  kFloat,  // IEEE: 2, 4 or 8 bytes
  kBfloat16,
  kFloat8E4m3fn,
  kFloat8E4m3fnuz,
  kFloat8E5m2,
  kFloat8E5m2fnuz,
  kFloat8E8m0fnu,
  kComplex,
};

constexpr bool is_float8(Numeric numeric) {
  return numeric >= Numeric::kFloat8E4m3fn &&
         numeric <= Numeric::kFloat8E8m0fnu;
}

// The type of a tensor's elements. Names are torch's without "torch.", or
// numpy's where torch has none; they are valid while the program or the
// Checkpoint lives.
struct Dtype {
  std::string_view name = "unknown";
  // Bytes per element, or per `packed` of them; 0 if unknown.
  std::uint32_t size = 0;
  std::uint32_t swap = 1;  // bytes per unit that is byte-swapped
  Numeric numeric = Numeric::kOpaque;
  std::uint32_t packed = 1;  // elements in `size` bytes

  bool known() const { return size > 0; }
  bool operator==(const Dtype& other) const { return name == other.name; }
};

// By torch's name ("float32"); of unknown size if torch has no such dtype.
Dtype dtype_named(std::string_view name);
// Whether torch has a dtype of that name.
bool is_torch_dtype(const Dtype& dtype);
// The storage class of torch.save ("FloatStorage"); empty for newer dtypes,
// whose storages are untyped.
std::string_view storage_name(const Dtype& dtype);
// By the name of a storage class ("FloatStorage"); UntypedStorage is uint8.
// nullptr if there is no such class.
const Dtype* dtype_of_storage(std::string_view class_name);
// By safetensors' name ("F32").
std::optional<Dtype> dtype_of_safetensors(std::string_view name);
// safetensors' name for it; empty if it has none.
std::string_view safetensors_name(const Dtype& dtype);
// numpy's array-protocol name without byte order ("f4"); empty if it has none.
std::string_view numpy_name(const Dtype& dtype);
// By numpy's kind and size as its dtype is pickled ("f4"); an opaque dtype of
// that name if torch has none ("U2").
Dtype dtype_of_numpy(std::string_view kind_and_size);

}  // namespace postflight
