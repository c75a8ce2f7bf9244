#include "checkpoint/zip/inflate.h"

#include <algorithm>
#include <span>
#include <string_view>

#include <zlib.h>

namespace postflight {
namespace {

constexpr std::uint64_t kFirstRoom = 64 << 10;
constexpr std::uint64_t kMostPerCall = 1 << 30;  // zlib counts in 32 bits

class RawInflater {
 public:
  RawInflater() : ready_(inflateInit2(&stream_, -MAX_WBITS) == Z_OK) {}
  RawInflater(const RawInflater&) = delete;
  RawInflater& operator=(const RawInflater&) = delete;
  ~RawInflater() {
    if (ready_)
      inflateEnd(&stream_);
  }

  bool ready() const { return ready_; }
  std::string_view message() const {
    return stream_.msg != nullptr ? stream_.msg : "no reason given";
  }

  // Moves both spans on by what was consumed and produced.
  int step(Bytes& from, std::span<std::byte>& to) {
    const auto in = static_cast<uInt>(std::min(from.size(), kMostPerCall));
    const auto out = static_cast<uInt>(std::min(to.size(), kMostPerCall));
    stream_.next_in = reinterpret_cast<const Bytef*>(from.data());
    stream_.avail_in = in;
    stream_.next_out = reinterpret_cast<Bytef*>(to.data());
    stream_.avail_out = out;
    const int status = ::inflate(&stream_, Z_NO_FLUSH);
    from = from.subspan(in - stream_.avail_in);
    to = to.subspan(out - stream_.avail_out);
    return status;
  }

 private:
  z_stream stream_{};
  bool ready_;
};

}  // namespace

Result<std::vector<std::byte>> inflate(Bytes deflated, std::uint64_t size) {
  RawInflater inflater;
  if (!inflater.ready())
    return fail(ErrorKind::kRefused, "no memory left to inflate with");
  std::vector<std::byte> out;
  std::span<std::byte> room;
  int status = Z_OK;
  while (status == Z_OK) {
    if (room.empty()) {
      const std::uint64_t used = out.size();
      if (used > size)
        return fail(ErrorKind::kCorrupt,
                    "it inflates to more than the {} bytes stated", size);
      // One byte more than stated, to notice when there is more.
      const std::uint64_t wanted = std::max(kFirstRoom, 2 * used);
      out.resize(wanted > size ? size + 1 : wanted);
      room = std::span(out).subspan(used);
    }
    status = inflater.step(deflated, room);
  }
  const std::uint64_t produced = out.size() - room.size();
  if (status == Z_BUF_ERROR)
    return fail(ErrorKind::kCorrupt,
                "its deflated bytes break off after inflating to {} of {}",
                produced, size);
  if (status != Z_STREAM_END)
    return fail(ErrorKind::kCorrupt,
                "it cannot be inflated beyond byte {} of {}: {}", produced,
                size, inflater.message());
  if (produced != size)
    return fail(ErrorKind::kCorrupt,
                "it inflates to {} bytes, not the {} stated", produced, size);
  if (!deflated.empty())
    return fail(ErrorKind::kCorrupt,
                "{} bytes follow the end of its deflated data",
                deflated.size());
  out.resize(produced);
  return out;
}

std::vector<std::byte> inflate_front(Bytes deflated, std::size_t most) {
  std::vector<std::byte> out(most);
  std::span<std::byte> room(out);
  RawInflater inflater;
  while (inflater.ready() && !room.empty() &&
         inflater.step(deflated, room) == Z_OK) {
  }
  out.resize(most - room.size());
  return out;
}

class InflateStream::Inflater : public RawInflater {};

InflateStream::InflateStream(Bytes deflated)
    : inflater_(std::make_unique<Inflater>()), rest_(deflated) {}

InflateStream::~InflateStream() = default;

Result<> InflateStream::read(std::span<std::byte> to) {
  if (!inflater_->ready())
    return fail(ErrorKind::kRefused, "no memory left to inflate with");
  while (!to.empty()) {
    const std::size_t before = to.size();
    const int status = inflater_->step(rest_, to);
    position_ += before - to.size();
    if (status == Z_OK || (status == Z_STREAM_END && to.empty()))
      continue;
    if (status == Z_STREAM_END || status == Z_BUF_ERROR)
      return fail(ErrorKind::kCorrupt,
                  "its deflated bytes end after inflating to {}", position_);
    return fail(ErrorKind::kCorrupt, "it cannot be inflated beyond byte {}: {}",
                position_, inflater_->message());
  }
  return {};
}

Result<> InflateStream::skip(std::uint64_t count) {
  std::vector<std::byte> room(std::min(count, kFirstRoom));
  while (count > 0) {
    const std::uint64_t part = std::min<std::uint64_t>(count, room.size());
    TRY(read(std::span(room).first(part)));
    count -= part;
  }
  return {};
}

}  // namespace postflight
