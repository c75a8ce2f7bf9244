#pragma once

#include <memory>
#include <string>

#include "base/bytes.h"

namespace postflight {

// A SHA-256 that is computed piece by piece.
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  ~Sha256();

  void add(Bytes bytes);
  // In hexadecimal digits. Once.
  std::string digest();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postflight
