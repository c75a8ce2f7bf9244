#pragma once

#include <cstddef>
#include <string>

#include "base/output.h"
#include "pickle/value.h"

namespace postflight {

struct PickleTextOptions {
  std::size_t width = 80;
  std::size_t margin = 0;
  bool all = false;        // nothing is shortened
  bool unicode = true;     // … instead of ...
  std::size_t pairs = 40;  // shown of a long dict
  std::size_t items = 12;  // shown of any other container
  std::size_t depth = 16;  // levels shown
  std::size_t text = 200;  // bytes shown of a string
};

// A value as text, close to Python's own notation, escaped, laid out to the
// width, ending in a newline. A shared value is written once, after &1, and
// then referred to as *1. Long lists, long strings and deep nesting are
// shortened, with a count.
void write_pickle_text(const Value& root, const PickleTextOptions& options,
                       Output& out);

// The same on one line of at most `width` columns.
std::string pickle_line(const Value& root, std::size_t width);

}  // namespace postflight
