#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flight/model/job.h"
#include "json/writer.h"

namespace postflight {

// Writes the fields of entries into the object that is open. What many entries
// share is made into text once.
class EntryFieldsJson {
 public:
  // `stacks_inline`: frames with each entry, instead of the stack's number.
  EntryFieldsJson(const Job& job, bool stacks_inline);

  void write(const RankDump& dump, std::uint32_t position, JsonWriter& json);

 private:
  const std::string& call(CallId id);
  const std::string& stack(StackId id);

  const Job& job_;
  bool stacks_inline_;
  std::vector<std::string> calls_;
  std::vector<std::string> stacks_;
};

// "extras":[{"key":"a","value":"b"}], or nothing if there are none.
void write_extras(const Job& job, const std::vector<Extra>& extras,
                  JsonWriter& json);

// "stack":[{"function":"f","file":"g","line":1}].
void write_stack(const Job& job, StackId stack, JsonWriter& json);

}  // namespace postflight
