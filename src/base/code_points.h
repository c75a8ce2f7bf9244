#pragma once

namespace postflight {

// A range of Unicode, both ends in it.
struct CodePoints {
  char32_t first;
  char32_t last;
};

}  // namespace postflight
