#include "stream/filter_sink.h"

#include <algorithm>
#include <span>
#include <utility>

namespace postflight {

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
