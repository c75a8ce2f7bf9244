#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/pointer_map.h"
#include "pickle/emitter.h"
#include "pickle/value.h"
#include "pickle/writer.h"

namespace postflight {

// Writes one pickle as torch's pickler in C++ writes a flight recorder's dump;
// see write_pickle().
//
// That pickler puts every string into the memo, but a container only if
// something else refers to it too, after its last part: the stack frames that
// several entries have in common, and the dump itself, which the recorder holds
// while it is written.
class RecorderWriter {
 public:
  explicit RecorderWriter(const WriteOptions& options)
      : emitter_(options.protocol, options.max_bytes) {}

  Result<std::string> write(const Value& root) &&;

 private:
  struct Place {
    Value value;
    std::size_t next = 0;
  };

  // Finds what is referred to twice; an error if a dump can't hold `root`.
  Result<> survey(const Value& root);
  Result<> meet(const Value& value);

  Result<> visit(const Value& value);
  Result<> write_string(const Value& value);
  void begin(const Value& value);
  void end(const Value& value);

  Emitter emitter_;
  std::vector<Place> path_;
  PointerMap met_;
  PointerMap memo_;
  PointerMap strings_;  // apart, as in PythonWriter
};

}  // namespace postflight
