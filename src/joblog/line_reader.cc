#include "joblog/line_reader.h"

#include "base/bytes.h"

#include <algorithm>

namespace postflight {
namespace {

constexpr std::size_t kBuffer = 128 << 10;

}  // namespace

LineReader::LineReader(Source& source, std::size_t max_line)
    : source_(source), max_line_(max_line), buffer_(kBuffer) {}

Result<bool> LineReader::fill() {
  const Taken taken = TRY(source_.read(buffer_));
  if (taken.would_block())
    return fail(ErrorKind::kIo, "no data is available yet");
  rest_ = as_text(Bytes(buffer_).first(taken.count));
  before_feed_ = rest_.substr(0, rest_.find('\n'));
  return taken.count > 0;
}

std::size_t LineReader::end_of_line() {
  // There may be thousands of progress bars before a line feed, so that is
  // searched for only once.
  const char* const feed = before_feed_.data() + before_feed_.size();
  const auto bytes = static_cast<std::size_t>(feed - rest_.data());
  return std::min(rest_.substr(0, bytes).find('\r'), bytes);
}

void LineReader::keep(std::size_t end) {
  const std::size_t room = max_line_ - std::min(max_line_, pending_.size());
  pending_.append(rest_.substr(0, std::min(end, room)));
}

Result<bool> LineReader::next() {
  pending_.clear();
  number_ = feeds_ + 1;
  bool pending = false;
  for (;;) {
    if (rest_.empty()) {
      Result<bool> more = fill();
      if (!more || !*more) {
        if (!pending || pending_.empty())
          return more;
        // If it is an error, the next call reports it.
        line_ = pending_;
        return true;
      }
    }
    const std::size_t end = end_of_line();
    if (end == rest_.size()) {
      keep(end);
      pending = true;
      rest_ = {};
      continue;
    }
    const bool feed = rest_[end] == '\n';
    if (pending) {
      keep(end);
      line_ = pending_;
    } else {
      line_ = rest_.substr(0, std::min(end, max_line_));
    }
    rest_.remove_prefix(end + 1);
    if (feed) {
      ++feeds_;
      before_feed_ = rest_.substr(0, rest_.find('\n'));
    }
    if (!line_.empty())
      return true;
    pending_.clear();
    pending = false;
    number_ = feeds_ + 1;
  }
}

}  // namespace postflight
