#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/output.h"
#include "flight/model/job.h"

namespace postflight {

// Entries as JSON members, "rank":0,"position":3,... without braces. What many
// entries share is made into text once.
class EntryFieldsJson {
 public:
  // `stacks_inline`: frames with each entry, instead of the stack's number.
  EntryFieldsJson(const Job& job, bool stacks_inline);

  void write(const RankDump& dump, std::uint32_t position, Output& out);

 private:
  const std::string& call(CallId id);
  const std::string& stack(StackId id);

  const Job& job_;
  bool stacks_inline_;
  std::vector<std::string> calls_;
  std::vector<std::string> stacks_;
};

// ,"extras":[{"key":"a","value":"b"}], or nothing if there are none.
void write_extras_json(const Job& job, const std::vector<Extra>& extras,
                       Output& out);

// "stack":[{"function":"f","file":"g","line":1}].
std::string frames_json(const Job& job, StackId stack);

}  // namespace postflight
