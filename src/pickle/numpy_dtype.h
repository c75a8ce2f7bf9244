#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "pickle/object.h"

namespace postflight {

// The elements that a call of numpy.dtype describes.
struct NumpyElement {
  std::uint64_t size = 0;
  bool objects = false;   // has pointers to Python objects in it
  bool is_plain = false;  // is one such pointer, or one number
  bool known = false;     // size and objects are
};

// NumPy believes the state that a dtype is given: one without the flag that
// says so lets bytes of the pickle be taken for addresses of Python objects,
// and offsets may lie anywhere.
class NumpyDtypes {
 public:
  // Nothing if the state is none that NumPy writes.
  std::optional<NumpyElement> element(const Object& call) {
    return of(call, 0);
  }

 private:
  std::optional<NumpyElement> of(const Object& call, int depth);
  std::optional<NumpyElement> judge(const Object& call, int depth);
  std::optional<NumpyElement> with_state(NumpyElement element, char kind,
                                         std::span<const Value> state,
                                         int depth);
  std::optional<NumpyElement> subarray(const Value& described, int depth);
  std::optional<bool> fields_hold_objects(const Value& names,
                                          const Value& fields,
                                          std::uint64_t size, int depth);

  // Many dtypes share one; nothing while it is being judged.
  std::unordered_map<const Object*, std::optional<NumpyElement>> known_;
};

// Whether it is a call of numpy.dtype.
bool is_numpy_dtype(const Value& value);

}  // namespace postflight
