#pragma once

#include "base/error.h"
#include "stream/source.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace postflight {

// Reads a stream line by line in constant memory. A carriage return ends a
// line, too: progress bars write no other separator before the next message.
// Only line feeds are counted.
class LineReader {
 public:
  // Lines are truncated to `max_line` bytes. `source` has to outlive the
  // reader.
  LineReader(Source& source, std::size_t max_line);

  // Moves to the next line that is not empty; false at the end. An error comes
  // after all lines before the damage.
  Result<bool> next();

  // Valid until the next call.
  std::string_view line() const { return line_; }
  // Counted from 1.
  std::uint64_t number() const { return number_; }

 private:
  Result<bool> fill();
  std::size_t end_of_line();
  // Appends the bytes up to `end` to the pending line.
  void keep(std::size_t end);

  Source& source_;
  std::size_t max_line_;
  std::vector<std::byte> buffer_;
  std::string_view rest_;         // of the buffer
  std::string_view before_feed_;  // the same up to its next line feed
  std::string pending_;           // the start of a line that exceeds the buffer
  std::string_view line_;
  std::uint64_t number_ = 1;
  std::uint64_t feeds_ = 0;
};

}  // namespace postflight
