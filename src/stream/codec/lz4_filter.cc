#include "stream/codec/built_in.h"
#include "stream/codec/pending.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <lz4frame.h>

namespace postflight {
namespace {

struct FreeContext {
  void operator()(LZ4F_cctx* context) const {
    LZ4F_freeCompressionContext(context);
  }
  void operator()(LZ4F_dctx* context) const {
    LZ4F_freeDecompressionContext(context);
  }
};
using Lz4EncoderContext = std::unique_ptr<LZ4F_cctx, FreeContext>;
using Lz4DecoderContext = std::unique_ptr<LZ4F_dctx, FreeContext>;

constexpr std::size_t kLz4Block = 256 << 10;  // LZ4F_max256KB
constexpr int kMaxLevel = 12;

// Independent blocks, with a checksum per block and for the whole contents.
LZ4F_preferences_t preferences(int level) {
  LZ4F_preferences_t preferences{};
  preferences.frameInfo.blockSizeID = LZ4F_max256KB;
  preferences.frameInfo.blockMode = LZ4F_blockIndependent;
  preferences.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
  preferences.frameInfo.blockChecksumFlag = LZ4F_blockChecksumEnabled;
  preferences.compressionLevel = level;
  preferences.autoFlush = 1;  // we buffer whole blocks ourselves
  return preferences;
}

class Lz4Encoder : public Filter {
 public:
  Lz4Encoder(Lz4EncoderContext context, int level)
      : context_(std::move(context)), preferences_(preferences(level)) {}

  Result<FilterState> step(Bytes& in, std::span<std::byte>& out,
                           FilterStage stage) override {
    for (;;) {
      pending_.give(out);
      if (out.empty())
        return FilterState::kNeedsRoom;
      if (!begun_) {
        begun_ = true;
        TRY(make(LZ4F_HEADER_SIZE_MAX, [&](std::byte* to, std::size_t room) {
          return LZ4F_compressBegin(context_.get(), to, room, &preferences_);
        }));
      } else if (block_.empty() && in.size() >= kLz4Block) {
        TRY(encode(in.first(kLz4Block)));
        in = in.subspan(kLz4Block);
      } else if (gather(in, block_, kLz4Block);
                 block_.size() == kLz4Block ||
                 (!block_.empty() && stage != FilterStage::kMore)) {
        TRY(encode(block_));
        block_.clear();
      } else if (stage == FilterStage::kLast && !ended_) {
        ended_ = true;
        TRY(make(bound(0), [&](std::byte* to, std::size_t room) {
          return LZ4F_compressEnd(context_.get(), to, room, nullptr);
        }));
      } else {
        return stage == FilterStage::kLast ? FilterState::kDone
                                           : FilterState::kNeedsInput;
      }
    }
  }

 private:
  std::size_t bound(std::size_t size) const {
    return LZ4F_compressBound(size, &preferences_);
  }

  Result<> encode(Bytes block) {
    return make(bound(block.size()), [&](std::byte* to, std::size_t room) {
      return LZ4F_compressUpdate(context_.get(), to, room, block.data(),
                                 block.size(), nullptr);
    });
  }

  Result<> make(std::size_t most, const auto& into) {
    const std::size_t size = into(pending_.room(most).data(), most);
    if (LZ4F_isError(size) != 0)
      return fail(ErrorKind::kIo, "lz4 cannot encode: {}",
                  LZ4F_getErrorName(size));
    pending_.shrink(size);
    return {};
  }

  Lz4EncoderContext context_;
  LZ4F_preferences_t preferences_;
  Pending pending_;
  std::vector<std::byte> block_;
  bool begun_ = false;
  bool ended_ = false;
};

class Lz4Decoder : public Filter {
 public:
  explicit Lz4Decoder(Lz4DecoderContext context)
      : context_(std::move(context)) {}

  Result<FilterState> step(Bytes& in, std::span<std::byte>& out,
                           FilterStage stage) override {
    for (;;) {
      if (out.empty())
        return FilterState::kNeedsRoom;
      if (in.empty() && !in_frame_) {
        if (stage != FilterStage::kLast)
          return FilterState::kNeedsInput;
        if (used_ == 0)
          return fail(ErrorKind::kCorrupt, "no lz4 data: the input is empty");
        return FilterState::kDone;
      }
      const bool held_back = holds_back_;
      std::size_t used = held_back ? 0 : std::min(in.size(), next_piece());
      std::size_t made = out.size();
      const std::size_t status = LZ4F_decompress(
          context_.get(), out.data(), &made, in.data(), &used, nullptr);
      if (LZ4F_isError(status) != 0)
        return fail(ErrorKind::kCorrupt,
                    "the lz4 data is damaged near byte {}, decoded to {} "
                    "bytes: {}",
                    used_, made_, LZ4F_getErrorName(status));
      used_ += used;
      made_ += made;
      in = in.subspan(used);
      out = out.subspan(made);
      in_frame_ = status != 0;
      wanted_ = in_frame_ ? status : kFirstPiece;
      holds_back_ = in_frame_ && out.empty();
      if (in_frame_ && used == 0 && made == 0 && !held_back) {
        if (stage != FilterStage::kLast)
          return FilterState::kNeedsInput;
        return fail(ErrorKind::kCorrupt,
                    "the lz4 data is truncated after byte {}, decoded to {} "
                    "bytes; the writer was probably killed",
                    used_, made_);
      }
    }
  }

 private:
  static constexpr std::size_t kFirstPiece = LZ4F_HEADER_SIZE_MIN;
  static constexpr std::size_t kBlockHeader = 4;

  // The library asks for a block and the header of the next. It is given one
  // after the other, and nothing while it may have buffered output: on an error
  // it does not report what it had decoded.
  std::size_t next_piece() const {
    return wanted_ > kBlockHeader ? wanted_ - kBlockHeader : wanted_;
  }

  Lz4DecoderContext context_;
  bool in_frame_ = false;
  bool holds_back_ = false;  // it may have buffered output: `out` was filled
  std::size_t wanted_ = kFirstPiece;
  std::uint64_t used_ = 0;
  std::uint64_t made_ = 0;
};

Result<std::unique_ptr<Filter>> make_lz4_encoder(int level) {
  LZ4F_cctx* context = nullptr;
  if (LZ4F_isError(LZ4F_createCompressionContext(&context, LZ4F_VERSION)) != 0)
    return fail(ErrorKind::kRefused, "out of memory for encoding lz4");
  return std::make_unique<Lz4Encoder>(Lz4EncoderContext(context), level);
}

Result<std::unique_ptr<Filter>> make_lz4_decoder() {
  LZ4F_dctx* context = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)) !=
      0)
    return fail(ErrorKind::kRefused, "out of memory for decoding lz4");
  return std::make_unique<Lz4Decoder>(Lz4DecoderContext(context));
}

}  // namespace

ExtensionType lz4_extension() {
  return {.registry_name = "stream.lz4@postflight",
          .summary = "LZ4 frames with checksums: faster, compresses less",
          .parameters = {{"level", "0 (default, fastest) to 12"}},
          .from_descriptor = [](const std::string& descriptor,
                                const TransformSettings& settings)
              -> Result<std::unique_ptr<Extension>> {
            const int level = static_cast<int>(
                TRY(settings.parameters.integer("level", 0, 0, kMaxLevel)));
            return std::make_unique<StreamTransform>(
                descriptor, [level] { return make_lz4_encoder(level); },
                make_lz4_decoder);
          }};
}

}  // namespace postflight
