#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
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
// That pickler knows strings by their text. It puts a container into the memo
// only if someone else holds it too, after its last part: the recorder itself
// holds each stack frame, a dict of name, filename and line, so all of those
// are there, and of the rest those that are referred to twice.
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
  Result<> write_string(std::string_view text);
  void begin(const Value& value);
  void end(const Value& value);

  Emitter emitter_;
  std::vector<Place> path_;
  PointerMap met_;
  PointerMap memo_;
  std::unordered_map<std::string_view, std::uint32_t> strings_;
};

}  // namespace postflight
