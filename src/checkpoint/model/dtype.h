#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

namespace postflight {

// What the bytes of an element mean, as far as showing it needs to know.
enum class Numeric : std::uint8_t {
  kOpaque,  // bits, packed quantized values, text: bytes and no more
  kBoolean,
  kSigned,
  kUnsigned,
  kFloat,  // IEEE: 2, 4 or 8 bytes
  kBfloat16,
  kFloat8,  // each kind told apart by its name
  kComplex,
};

// The type of a tensor's elements. Names are torch's without "torch.", or
// numpy's for what torch has not; they are valid while the program or the
// Checkpoint is.
struct Dtype {
  std::string_view name = "unknown";
  std::uint32_t size = 0;  // bytes an element; 0 where we do not know
  std::uint32_t swap = 1;  // what is turned around in the other byte order
  Numeric numeric = Numeric::kOpaque;
  std::uint32_t per_byte = 1;  // elements packed into one byte

  bool known() const { return size > 0; }
  bool operator==(const Dtype& other) const { return name == other.name; }
};

// By torch's name ("float32"); one of unknown size if torch has none such.
Dtype dtype_named(std::string_view name);
// By the name of a storage class ("FloatStorage"); UntypedStorage is uint8.
// nullptr if there is none such.
const Dtype* dtype_of_storage(std::string_view class_name);
// By safetensors' name ("F32").
std::optional<Dtype> dtype_of_safetensors(std::string_view name);
// safetensors' name for it; empty if it has none.
std::string_view safetensors_name(const Dtype& dtype);
// numpy's array-protocol name without byte order ("f4"); empty if it has none.
std::string_view numpy_name(const Dtype& dtype);
// By numpy's kind and size as its dtype is pickled ("f4"); one named so, and
// opaque, where torch has none such ("U2").
Dtype dtype_of_numpy(std::string_view kind_and_size);

}  // namespace postflight
