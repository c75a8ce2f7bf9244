#pragma once

#include "stream/filter.h"
#include "stream/filter_source.h"
#include "stream/sink.h"

#include <memory>
#include <vector>

namespace postflight {

// Writes the output of a filter to `below`, which has to outlive it.
class FilterSink : public Sink {
 public:
  FilterSink(Sink& below, std::unique_ptr<Filter> filter,
             std::size_t buffer_size = kStreamBuffer);

  Result<> write(Bytes bytes) override;
  Result<> flush() override;
  // Leaves `below` unfinished, for data that may follow.
  Result<> finish() override;
  std::uint64_t tell() const override { return position_; }

 private:
  Result<> run(Bytes bytes, FilterStage stage);

  Sink& below_;
  std::unique_ptr<Filter> filter_;
  std::vector<std::byte> buffer_;
  bool finished_ = false;
  std::uint64_t position_ = 0;
};

}  // namespace postflight
