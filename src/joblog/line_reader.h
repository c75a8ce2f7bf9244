#pragma once

#include "base/error.h"
#include "stream/source.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace postflight {

// Reads a stream line by line in memory that does not grow with it. Carriage
// returns end a line too, since progress bars write nothing else between
// themselves and the message that follows, but only line feeds are counted.
class LineReader {
 public:
  // Of a longer line than `max_line`, that much is given out. `source` has to
  // outlive the reader.
  LineReader(Source& source, std::size_t max_line);

  // Goes to the next line that is not empty; false at the end. After an error,
  // the lines before the damage have been given out.
  Result<bool> next();

  // Valid until the next call.
  std::string_view line() const { return line_; }
  // Counted from 1.
  std::uint64_t number() const { return number_; }

 private:
  Result<bool> fill();
  std::size_t end_of_line();
  // Puts the bytes up to `end` behind those of the line before them.
  void keep(std::size_t end);

  Source& source_;
  std::size_t max_line_;
  std::vector<std::byte> buffer_;
  std::string_view rest_;         // of the buffer
  std::string_view before_feed_;  // the same up to its next line feed
  std::string pending_;  // the front of a line that goes past the buffer
  std::string_view line_;
  std::uint64_t number_ = 1;
  std::uint64_t feeds_ = 0;
};

}  // namespace postflight
