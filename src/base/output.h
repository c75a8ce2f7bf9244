#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace postflight {

// Text on its way out, handed on in pieces: what a small file makes us say can
// be large, and need not be kept.
class Output {
 public:
  using Sink = std::function<void(std::string_view)>;

  explicit Output(Sink sink) : sink_(std::move(sink)) {}
  ~Output() { flush(); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  Output& operator+=(std::string_view text) {
    buffer_ += text;
    if (buffer_.size() >= kPiece)
      flush();
    return *this;
  }

  void flush() {
    if (!buffer_.empty())
      sink_(buffer_);
    buffer_.clear();
  }

 private:
  static constexpr std::size_t kPiece = 64 << 10;

  Sink sink_;
  std::string buffer_;
};

}  // namespace postflight
