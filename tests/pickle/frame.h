#pragma once

#include <string>

namespace postflight {

// The opcode FRAME, which announces `size` bytes.
inline std::string frame(char size) {
  using namespace std::string_literals;
  return "\x95"s + size + "\0\0\0\0\0\0\0"s;
}

}  // namespace postflight
