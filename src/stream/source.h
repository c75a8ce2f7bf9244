#pragma once

#include "base/bytes.h"
#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace postflight {

// What one read came to: bytes, the end of the stream, or neither for now
// because the writer at the other end has not written any yet.
struct Taken {
  std::size_t count = 0;
  bool at_end = false;  // with a count of 0 only

  bool would_block() const { return count == 0 && !at_end; }
};

// Bytes that are pulled, front to back.
class Source {
 public:
  virtual ~Source() = default;

  // Puts at least one byte and at most all of `to`, which is not empty, unless
  // the stream ended or would block. After an error that says where the bytes
  // are damaged, all bytes before the damage have been given out.
  virtual Result<Taken> read(std::span<std::byte> to) = 0;
  // How many bytes lie before the next one.
  virtual std::uint64_t tell() const = 0;

  virtual bool seekable() const { return false; }
  // Takes all that is left as it lies in memory, if it does; it is then neither
  // copied nor read again, and valid as long as what this source reads.
  virtual std::optional<Bytes> take_rest() { return std::nullopt; }
  // Goes to a position as tell() gives it. One past the end is read as the
  // end.
  virtual Result<> seek(std::uint64_t position);
};

// Fills `to` as far as the stream goes and says how far that was. Fails on a
// stream that would block.
Result<std::size_t> read_fully(Source& source, std::span<std::byte> to);

// Passes over `count` bytes, by a seek where that is possible. False if the
// stream ends before.
Result<bool> skip(Source& source, std::uint64_t count);

}  // namespace postflight
