#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/limits.h"
#include "pickle/audit/safety.h"

namespace postflight {

// What one of Python's unpicklers would make of a pickle.
struct Reading {
  std::string_view reader;  // a stable identifier in snake_case
  std::string_view title;   // its name in full
  bool refuses = false;
  std::string why;       // of a refusal
  std::uint64_t at = 0;  // where it stops: behind STOP, or at what it refuses
  std::vector<std::string> imports;  // before that, each once, in order
  std::vector<std::string> calls;    // likewise
};

struct Readings {
  std::vector<Reading> readings;
  std::vector<Reason>
      differences;  // what readers take differently, scrutinize()
  // Whether any two that read it to its end import or call other names.
  bool differ = false;
};

// The bytes as CPython's reader in C sees them in a file, before 3.13.15 and
// 3.14.7: an argument that reaches beyond the frame is read from behind it, and
// what was left of the frame is lost.
std::string bytes_behind_frames(Bytes pickle);

// How CPython's unpicklers in C and in Python, torch's weights-only one and
// pickletools, on which scanners rest, each read the same bytes. Nothing is
// run.
Readings read_as_all(Bytes pickle, const Limits& limits);

}  // namespace postflight
