#pragma once

#include "base/bytes.h"
#include "base/limits.h"
#include "pickle/machine.h"

namespace postflight {

bool starts_like_pickle(Bytes bytes);  // of protocol 2 or later

// Tries bytes as a pickle. Protocols 0 and 1 have no signature, so only reading
// them tells.
class PickleProbe {
 public:
  explicit PickleProbe(const Limits& limits) : machine_(limits) {}

  struct Answer {
    bool reads = false;          // to its STOP
    bool runs = false;           // it would have called or imported something
    bool runs_by_lines = false;  // also to a reader that wants whole lines
  };
  Answer answer(Bytes bytes);

  // Whether the front of a zip archive, read as a pickle, would import what its
  // first record does not.
  bool imports_at_front(Bytes archive);

  // Its values are gone with the next question.
  Machine& machine() { return machine_; }

 private:
  Machine machine_;
};

}  // namespace postflight
