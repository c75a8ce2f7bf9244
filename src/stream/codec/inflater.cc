#include "stream/codec/inflater.h"

#include <algorithm>

#include <zlib.h>

namespace postflight {
namespace {

constexpr std::size_t kMostPerCall = 1 << 30;  // zlib counts in 32 bits

// zlib takes the format as a variation of the window size.
int window_bits(DeflateFormat format) {
  constexpr int kGzipOnly = 16;
  switch (format) {
    case DeflateFormat::kRaw:
      return -MAX_WBITS;
    case DeflateFormat::kZlib:
      return MAX_WBITS;
    case DeflateFormat::kGzip:
      return MAX_WBITS + kGzipOnly;
  }
  return MAX_WBITS;
}

}  // namespace

struct Inflater::State {
  explicit State(DeflateFormat format)
      : ready(inflateInit2(&stream, window_bits(format)) == Z_OK) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (ready)
      inflateEnd(&stream);
  }

  z_stream stream{};
  bool ready;
};

Inflater::Inflater(DeflateFormat format)
    : state_(std::make_unique<State>(format)) {}

Inflater::~Inflater() = default;

bool Inflater::ready() const {
  return state_->ready;
}

Inflater::Status Inflater::step(Bytes& in, std::span<std::byte>& out) {
  z_stream& stream = state_->stream;
  const auto most_in = static_cast<uInt>(std::min(in.size(), kMostPerCall));
  const auto most_out = static_cast<uInt>(std::min(out.size(), kMostPerCall));
  stream.next_in = reinterpret_cast<const Bytef*>(in.data());
  stream.avail_in = most_in;
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = most_out;
  const int status = ::inflate(&stream, Z_NO_FLUSH);
  in = in.subspan(most_in - stream.avail_in);
  out = out.subspan(most_out - stream.avail_out);
  switch (status) {
    case Z_OK:
      return Status::kMore;
    case Z_STREAM_END:
      return Status::kEnd;
    case Z_BUF_ERROR:
      return Status::kStuck;
    default:
      return Status::kDamaged;
  }
}

bool Inflater::reset() {
  return inflateReset(&state_->stream) == Z_OK;
}

std::string_view Inflater::message() const {
  const char* const text = state_->stream.msg;
  return text != nullptr ? text : "no reason given";
}

}  // namespace postflight
