#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/limits.h"
#include "pickle/audit/audit.h"
#include "pickle/machine.h"

namespace postflight {

// A pickle as joblib.load reads it: the elements of its arrays lie between the
// opcodes, each behind the BUILD of a NumpyArrayWrapper that describes them.
struct JoblibPickle {
  std::string opcodes;         // without the elements
  std::uint64_t elements = 0;  // bytes of them
  // What arrays of objects consist of, which are pickles of their own.
  std::vector<Bytes> objects;
};

// Whether what `machine` just read names such a wrapper.
bool has_joblib_arrays(const Machine& machine);

// The pickle at the start of `bytes`; nothing if joblib would not read it to
// its end, either.
std::optional<JoblibPickle> read_joblib_pickle(Bytes bytes,
                                               const Limits& limits);

bool is_joblib_wrapper(const GlobalUse& use);
bool is_joblib_wrapper(const CallUse& use);

// The wrappers, whose calls were looked into, are plain.
void trust_joblib_arrays(Audit& audit);

}  // namespace postflight
