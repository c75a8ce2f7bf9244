#pragma once

#include "stream/filter.h"
#include "stream/sink.h"
#include "stream/source.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace postflight {

// The default buffer size: large enough to make calls rare, small enough to
// stay in the processor's cache.
constexpr std::size_t kStreamBuffer = 128 << 10;

// The output of a filter applied to `below`, which must outlive it. Input
// that is in memory is not copied; of other input at most `buffer_size` bytes
// are buffered.
class FilterSource : public Source {
 public:
  FilterSource(Source& below, std::unique_ptr<Filter> filter,
               std::size_t buffer_size = kStreamBuffer);

  Result<Taken> read(std::span<std::byte> to) override;
  std::uint64_t tell() const override { return position_; }
  bool seekable() const override;
  Result<> seek(std::uint64_t position) override;

 private:
  // Damage is sticky: later reads fail with the same error.
  struct Damage {
    ErrorKind kind;
    std::string message;
  };

  // False if reading would block.
  Result<bool> more_input();

  Source& below_;
  std::unique_ptr<Filter> filter_;
  std::size_t buffer_size_;
  std::vector<std::byte> buffer_;  // allocated on first use
  Bytes input_;                    // not consumed by the filter yet
  bool below_ended_ = false;
  bool done_ = false;
  std::optional<Damage> damage_;
  std::uint64_t position_ = 0;
};

// Writes the output of a filter to `below`, which must outlive it.
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
