#pragma once

#include "base/bytes.h"
#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace postflight {

// The result of one read: bytes, the end of the stream, or neither because the
// read would block.
struct Taken {
  std::size_t count = 0;
  bool at_end = false;  // only with a count of 0

  bool would_block() const { return count == 0 && !at_end; }
};

// A stream of bytes that is read front to back.
class Source {
 public:
  virtual ~Source() = default;

  // Reads at least one byte and at most all of `to`, which is not empty, unless
  // the stream ended or would block. If it fails because the data is damaged,
  // all bytes before the damage have been returned.
  virtual Result<Taken> read(std::span<std::byte> to) = 0;
  // The offset of the next byte.
  virtual std::uint64_t tell() const = 0;

  virtual bool seekable() const { return false; }
  // If the rest of the stream is in memory, consumes it and returns it without
  // a copy; it is valid as long as the data that this source reads.
  virtual std::optional<Bytes> take_rest() { return std::nullopt; }
  // Seeks to a position as returned by tell(). A position past the end reads as
  // the end.
  virtual Result<> seek(std::uint64_t position);
};

// Fills `to` until the stream ends and returns the number of bytes read. Fails
// on a stream that would block.
Result<std::size_t> read_fully(Source& source, std::span<std::byte> to);

// Skips `count` bytes, by a seek if possible. False if the stream ends before.
Result<bool> skip(Source& source, std::uint64_t count);

}  // namespace postflight
