#pragma once

#include <vector>

#include "base/bytes.h"
#include "pickle/audit/safety.h"

namespace postflight {

// Goes through the opcodes of a pickle, or of the part of one that was read,
// without running them, and finds what readers take differently: CPython's
// unpicklers in C and in Python, old and new, torch's weights-only one, and
// pickletools, on which scanners rest. Each kind of doubt is named once, with
// the first place.
struct Scrutiny {
  std::vector<Reason> doubts;
  bool has_persistent_ids = false;
};

Scrutiny scrutinize(Bytes pickle);

}  // namespace postflight
