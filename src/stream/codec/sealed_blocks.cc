#include "stream/codec/sealed_blocks.h"

#include "stream/codec/pending.h"

#include <cstring>
#include <utility>
#include <vector>

namespace postflight {
namespace {

constexpr std::size_t kSizeBytes = 4;
constexpr std::uint32_t kLastBit = 1u << 31;

class SealingFilter : public Filter {
 public:
  SealingFilter(std::unique_ptr<Seal> seal, std::size_t block_size)
      : seal_(std::move(seal)), block_size_(block_size) {}

  Result<FilterState> step(Bytes& in, std::span<std::byte>& out,
                           FilterStage stage) override {
    bool gave = false;
    for (;;) {
      gave |= !pending_.empty();
      pending_.give(out);
      if (out.empty())
        return FilterState::kNeedsRoom;
      if (!begun_) {
        begun_ = true;
        TRY(seal_->write_front(pending_.room(seal_->front_size())));
        continue;
      }
      // Whether a block is the last depends on what follows, so a full block is
      // held until more data arrives.
      const bool more_follows = in.size() > block_size_;
      if (block_.empty() && more_follows) {
        const std::size_t sealed = sealed_size(block_size_);
        if (out.size() < sealed && gave)
          return FilterState::kNeedsRoom;  // rather than through a copy
        const Bytes block = in.first(block_size_);
        if (out.size() >= sealed) {
          TRY(close(block, /*last=*/false, out.first(sealed)));
          out = out.subspan(sealed);
          gave = true;
        } else {
          TRY(close(block, /*last=*/false, pending_.room(sealed)));
        }
        in = in.subspan(block_size_);
        continue;
      }
      gather(in, block_, block_size_);
      const bool full = block_.size() == block_size_ && !in.empty();
      const bool flush = stage == FilterStage::kFlush && !block_.empty();
      const bool last = stage == FilterStage::kLast && in.empty() && !ended_;
      if (!full && !flush && !last)
        return stage == FilterStage::kLast ? FilterState::kDone
                                           : FilterState::kNeedsInput;
      TRY(close(block_, last, pending_.room(sealed_size(block_.size()))));
      block_.clear();
      ended_ = last;
    }
  }

 private:
  std::size_t sealed_size(std::size_t size) const {
    return kSizeBytes + size + seal_->tag_size();
  }

  Result<> close(Bytes block, bool last, std::span<std::byte> to) {
    const std::uint32_t size =
        static_cast<std::uint32_t>(block.size()) | (last ? kLastBit : 0);
    std::memcpy(to.data(), &size, kSizeBytes);
    return seal_->close({.index = index_++, .last = last}, block,
                        to.subspan(kSizeBytes, block.size()),
                        to.last(seal_->tag_size()));
  }

  std::unique_ptr<Seal> seal_;
  std::size_t block_size_;
  std::vector<std::byte> block_;
  Pending pending_;
  std::uint64_t index_ = 0;
  bool begun_ = false;
  bool ended_ = false;
};

class OpeningFilter : public Filter {
 public:
  OpeningFilter(std::unique_ptr<Seal> seal, std::uint64_t max_block)
      : seal_(std::move(seal)), max_block_(max_block) {}

  Result<FilterState> step(Bytes& in, std::span<std::byte>& out,
                           FilterStage stage) override {
    for (;;) {
      pending_.give(out);
      if (out.empty())
        return FilterState::kNeedsRoom;
      if (ended_) {
        if (!in.empty())
          return fail(ErrorKind::kCorrupt,
                      "bytes follow the last block at byte {}", used_);
        return stage == FilterStage::kLast ? FilterState::kDone
                                           : FilterState::kNeedsInput;
      }
      const std::size_t wanted = piece_size();
      // A piece that is complete in the input is not copied.
      if (gathered_.empty() && in.size() >= wanted) {
        const Bytes piece = in.first(wanted);
        in = in.subspan(wanted);
        TRY(take(piece, out));
        continue;
      }
      gather(in, gathered_, wanted);
      if (gathered_.size() == wanted) {
        TRY(take(gathered_, out));
        gathered_.clear();
        continue;
      }
      if (stage == FilterStage::kLast)
        return breaks_off();
      return FilterState::kNeedsInput;
    }
  }

 private:
  enum class Next { kFront, kSize, kBlock };

  // The size of the next piece.
  std::size_t piece_size() const {
    switch (next_) {
      case Next::kFront:
        return seal_->front_size();
      case Next::kSize:
        return kSizeBytes;
      case Next::kBlock:
        break;
    }
    return block_size_ + seal_->tag_size();
  }

  Result<> take(Bytes piece, std::span<std::byte>& out) {
    if (next_ == Next::kFront) {
      TRY(seal_->read_front(piece));
      next_ = Next::kSize;
    } else if (next_ == Next::kSize) {
      TRY(take_size(load_little_endian<std::uint32_t>(piece.data())));
    } else {
      TRY(take_block(piece, out));
    }
    used_ += piece.size();
    return {};
  }

  Result<> take_size(std::uint32_t size) {
    last_ = (size & kLastBit) != 0;
    block_size_ = size & ~kLastBit;
    if (block_size_ > max_block_)
      return fail(ErrorKind::kCorrupt,
                  "block {} at byte {} claims {} bytes, more than the {} "
                  "allowed; it is damaged, or not a stream of this kind",
                  index_, used_, block_size_, max_block_);
    next_ = Next::kBlock;
    return {};
  }

  Result<> take_block(Bytes piece, std::span<std::byte>& out) {
    const Bytes sealed = piece.first(block_size_);
    const Bytes tag = piece.subspan(block_size_);
    const BlockPlace place{.index = index_, .last = last_};
    const bool direct = out.size() >= block_size_;
    const std::span<std::byte> plain =
        direct ? out.first(block_size_) : pending_.room(block_size_);
    if (Result<> opened = seal_->open(place, sealed, tag, plain); !opened) {
      pending_.room(0);
      return tl::unexpected<Error>(std::move(opened).error().in(fmt::format(
          "block {}, {} bytes at byte {}", index_, block_size_, used_)));
    }
    if (direct)
      out = out.subspan(block_size_);
    made_ += block_size_;
    ++index_;
    ended_ = last_;
    next_ = Next::kSize;
    return {};
  }

  tl::unexpected<Error> breaks_off() const {
    return fail(ErrorKind::kCorrupt,
                "the stream is truncated in block {} after byte {}, decoded to "
                "{} bytes",
                index_, used_ + gathered_.size(), made_);
  }

  std::unique_ptr<Seal> seal_;
  std::uint64_t max_block_;
  Next next_ = Next::kFront;
  std::vector<std::byte> gathered_;  // of a piece that arrives in parts
  Pending pending_;
  std::size_t block_size_ = 0;
  bool last_ = false;
  bool ended_ = false;
  std::uint64_t index_ = 0;
  std::uint64_t used_ = 0;
  std::uint64_t made_ = 0;
};

}  // namespace

std::unique_ptr<Filter> make_sealing_filter(std::unique_ptr<Seal> seal,
                                            std::size_t block_size) {
  return std::make_unique<SealingFilter>(std::move(seal), block_size);
}

std::unique_ptr<Filter> make_opening_filter(std::unique_ptr<Seal> seal,
                                            const Limits& limits) {
  return std::make_unique<OpeningFilter>(std::move(seal),
                                         limits.max_stream_block_bytes);
}

}  // namespace postflight
