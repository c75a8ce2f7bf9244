#pragma once

#include "stream/filter.h"
#include "stream/source.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace postflight {

// How much a stream reads or writes at a time where it needs a buffer; large
// enough to make calls rare, small enough to stay in the processor's cache.
constexpr std::size_t kStreamBuffer = 128 << 10;

// What comes out of a filter over `below`, which has to outlive it. Bytes that
// lie in memory are read there. Of others it holds no more than `buffer_size`.
class FilterSource : public Source {
 public:
  FilterSource(Source& below, std::unique_ptr<Filter> filter,
               std::size_t buffer_size = kStreamBuffer);

  Result<Taken> read(std::span<std::byte> to) override;
  std::uint64_t tell() const override { return position_; }
  bool seekable() const override;
  Result<> seek(std::uint64_t position) override;

 private:
  // Where damage was found once, it is found again.
  struct Damage {
    ErrorKind kind;
    std::string message;
  };

  // False if nothing has arrived.
  Result<bool> more_input();

  Source& below_;
  std::unique_ptr<Filter> filter_;
  std::size_t buffer_size_;
  std::vector<std::byte> buffer_;  // made when it is needed
  Bytes input_;                    // what the filter has not used yet
  bool below_ended_ = false;
  bool done_ = false;
  std::optional<Damage> damage_;
  std::uint64_t position_ = 0;
};

}  // namespace postflight
