#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "base/bytes.h"

namespace postflight {

// SHA-256 of bytes given piece by piece.
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  ~Sha256();

  void add(Bytes bytes);
  // In 64 hexadecimal digits; nothing may be added after it.
  std::string digest();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postflight
