#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace postflight {

// The front of a NumPy file (.npy): a dict as Python writes it.
struct NumpyHeader {
  std::string_view descr;  // as written: '<f4', or a list of fields
  std::uint64_t data = 0;  // where the elements begin
  // Whether the elements are, or could be, objects: a pickle.
  bool objects = false;
  std::optional<std::uint64_t> bytes = {};  // of all elements, if plain
  // The rest is known if `bytes` are.
  std::string_view element = {};  // "f4"; empty if it has fields
  bool big_endian = false;
  bool fortran = false;  // the first index runs fastest
  std::vector<std::int64_t> shape = {};
};

bool is_numpy_file(Bytes file);
// Empty if it is damaged.
std::optional<NumpyHeader> read_numpy_header(Bytes file);

}  // namespace postflight
