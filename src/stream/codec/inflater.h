#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/bytes.h"

namespace postflight {

enum class DeflateFormat : std::uint8_t { kRaw, kZlib, kGzip };

// zlib's inflate, a step at a time: the one place that calls it.
class Inflater {
 public:
  enum class Status : std::uint8_t {
    kMore,     // some bytes were read or written; go on
    kEnd,      // of the stream; `in` begins after it
    kStuck,    // nothing to do without more input or room
    kDamaged,  // message() says why
  };

  explicit Inflater(DeflateFormat format);
  ~Inflater();

  // False if there was no memory for it.
  bool ready() const;
  // Advances both spans by what was read and written.
  Status step(Bytes& in, std::span<std::byte>& out);
  // Makes it ready for another stream of the same format; false if it fails.
  bool reset();
  std::string_view message() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postflight
