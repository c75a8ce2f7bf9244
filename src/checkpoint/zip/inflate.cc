#include "checkpoint/zip/inflate.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/interruption.h"

namespace postflight {
namespace {

constexpr std::uint64_t kFirstRoom = 64 << 10;
using Status = Inflater::Status;

}  // namespace

Result<std::vector<std::byte>> inflate(Bytes deflated, std::uint64_t size) {
  Inflater inflater(DeflateFormat::kRaw);
  if (!inflater.ready())
    return fail(ErrorKind::kRefused, "out of memory for inflating");
  std::vector<std::byte> out;
  std::span<std::byte> room;
  Status status = Status::kMore;
  while (status == Status::kMore) {
    TRY(check_interruption());
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
  if (status == Status::kStuck)
    return fail(ErrorKind::kCorrupt,
                "its deflated data is truncated: it inflates to {} bytes of {}",
                produced, size);
  if (status != Status::kEnd)
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
  Inflater inflater(DeflateFormat::kRaw);
  while (inflater.ready() && !room.empty() &&
         inflater.step(deflated, room) == Status::kMore) {
  }
  out.resize(most - room.size());
  return out;
}

InflateStream::InflateStream(More more)
    : inflater_(DeflateFormat::kRaw), more_(std::move(more)) {}

Result<> InflateStream::read(std::span<std::byte> to) {
  if (!inflater_.ready())
    return fail(ErrorKind::kRefused, "out of memory for inflating");
  while (!to.empty()) {
    TRY(check_interruption());
    if (rest_.empty())
      rest_ = TRY(more_());
    const std::size_t before = to.size();
    const Status status = inflater_.step(rest_, to);
    position_ += before - to.size();
    if (status == Status::kMore || (status == Status::kEnd && to.empty()))
      continue;
    if (status == Status::kEnd || status == Status::kStuck)
      return fail(ErrorKind::kCorrupt,
                  "its deflated data ends after inflating to {} bytes",
                  position_);
    return fail(ErrorKind::kCorrupt, "it cannot be inflated beyond byte {}: {}",
                position_, inflater_.message());
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
