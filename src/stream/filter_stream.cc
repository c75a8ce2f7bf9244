#include "stream/filter_stream.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

namespace postflight {

FilterSource::FilterSource(Source& below, std::unique_ptr<Filter> filter,
                           std::size_t buffer_size)
    : below_(below),
      filter_(std::move(filter)),
      buffer_size_(std::max<std::size_t>(buffer_size, 1)) {}

Result<bool> FilterSource::more_input() {
  if (const std::optional<Bytes> rest = below_.take_rest()) {
    input_ = *rest;
    below_ended_ = true;
    return true;
  }
  buffer_.resize(buffer_size_);
  const Taken taken = TRY(below_.read(buffer_));
  below_ended_ = taken.at_end;
  input_ = Bytes(buffer_).first(taken.count);
  return !taken.would_block();
}

Result<Taken> FilterSource::read(std::span<std::byte> to) {
  while (!damage_ && !done_) {
    if (input_.empty() && !below_ended_ && !TRY(more_input()))
      return Taken{};
    std::span<std::byte> room = to;
    const std::size_t had = input_.size();
    Result<FilterState> state = filter_->step(
        input_, room, below_ended_ ? FilterStage::kLast : FilterStage::kMore);
    const std::size_t count = to.size() - room.size();
    position_ += count;
    if (!state)
      damage_ =
          Damage{state.error().kind(), std::string(state.error().message())};
    else if (*state == FilterState::kDone)
      done_ = true;
    else if (count == 0 && input_.size() == had && below_ended_)
      damage_ = Damage{ErrorKind::kCorrupt, "the stream is truncated"};
    if (count > 0)
      return Taken{.count = count};
  }
  if (damage_)
    return fail(damage_->kind, "{}", damage_->message);
  return Taken{.at_end = true};
}

bool FilterSource::seekable() const {
  return filter_->keeps_places() && below_.seekable();
}

Result<> FilterSource::seek(std::uint64_t position) {
  if (!seekable())
    return Source::seek(position);
  // Positions here are relative to the initial position of the source below,
  // which is its current one minus what was read through here and what is
  // buffered.
  const std::uint64_t origin = below_.tell() - input_.size() - position_;
  const auto target = checked_add(origin, position);
  if (!target)
    return fail(ErrorKind::kIo, "cannot seek to byte {}", position);
  TRY(below_.seek(*target));
  input_ = {};
  below_ended_ = done_ = false;
  position_ = position;
  return {};
}

FilterSink::FilterSink(Sink& below, std::unique_ptr<Filter> filter,
                       std::size_t buffer_size)
    : below_(below),
      filter_(std::move(filter)),
      buffer_(std::max<std::size_t>(buffer_size, 1)) {}

Result<> FilterSink::write(Bytes bytes) {
  TRY(run(bytes, FilterStage::kMore));
  position_ += bytes.size();
  return {};
}

Result<> FilterSink::flush() {
  TRY(run({}, FilterStage::kFlush));
  return below_.flush();
}

Result<> FilterSink::finish() {
  TRY(run({}, FilterStage::kLast));
  finished_ = true;
  return {};
}

Result<> FilterSink::run(Bytes bytes, FilterStage stage) {
  if (finished_)
    return fail(ErrorKind::kUsage, "the stream is already finished");
  for (;;) {
    std::span<std::byte> room(buffer_);
    const FilterState state = TRY(filter_->step(bytes, room, stage));
    TRY(below_.write(Bytes(buffer_).first(buffer_.size() - room.size())));
    if (state != FilterState::kNeedsRoom)
      return {};
  }
}

}  // namespace postflight
