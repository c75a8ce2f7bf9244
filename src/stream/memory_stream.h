#pragma once

#include "stream/sink.h"
#include "stream/source.h"

#include <string>

namespace postflight {

// Reads from memory that outlives it.
class MemorySource : public Source {
 public:
  explicit MemorySource(Bytes bytes) : bytes_(bytes) {}

  Result<Taken> read(std::span<std::byte> to) override;
  std::uint64_t tell() const override { return position_; }
  bool seekable() const override { return true; }
  std::optional<Bytes> take_rest() override;
  Result<> seek(std::uint64_t position) override;

 private:
  Bytes bytes_;
  std::uint64_t position_ = 0;
};

// Collects what is written.
class MemorySink : public Sink {
 public:
  Result<> write(Bytes bytes) override;
  Result<> flush() override { return {}; }
  std::uint64_t tell() const override { return contents_.size(); }

  const std::string& contents() const { return contents_; }
  std::string take() { return std::move(contents_); }

 private:
  std::string contents_;
};

}  // namespace postflight
