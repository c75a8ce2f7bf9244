#pragma once

#include "base/limits.h"
#include "joblog/line.h"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace postflight {

// An exception as Python prints it.
struct Traceback {
  LogOrigin origin;       // of its first line
  std::string exception;  // "KeyError: 'x'"; empty if the log ends before it
  std::string cause;      // the exception that started the chain, if another
  std::string frame;      // "train.py:212"
};

// Finds tracebacks in the lines of many processes, which may be interleaved as
// long as prefixes tell them apart.
class TracebackReader {
 public:
  explicit TracebackReader(const Limits& limits) : limits_(limits) {}

  // True if the line is part of a traceback and needs no further look.
  bool take(const LogLine& line, const LogOrigin& origin);
  // Ends all open tracebacks.
  void finish();
  // Those that ended since the last call.
  std::vector<Traceback> take_ended() { return std::exchange(ended_, {}); }

 private:
  struct Open {
    Traceback traceback;
    std::size_t indentation = 0;
    bool has_exception = false;
    bool chained = false;      // another of the same chain follows
    bool user_frame = false;   // `frame` is not a library's
    std::uint32_t others = 0;  // lines since then that are not part of it
  };

  bool take_inside(Open& open, std::string_view text);
  void start(std::uint64_t process, const LogLine& line,
             const LogOrigin& origin);
  void end(Open&& open);
  std::string cut(std::string_view text) const;

  const Limits& limits_;
  std::unordered_map<std::uint64_t, Open> open_;
  std::vector<Traceback> ended_;
};

}  // namespace postflight
