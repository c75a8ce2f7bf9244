#include "stream/codec/zstd_filter.h"

#include "stream/codec/built_in.h"
#include "stream/codec/pending.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <deque>
#include <future>
#include <span>
#include <utility>

// For ZSTD_getFrameHeader and ZSTD_decompressBound, which are only in the
// static library; we link that of the same version.
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#include <zstd_errors.h>

namespace postflight {
namespace {

struct FreeDecoder {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};
using ZstdDecoderContext = std::unique_ptr<ZSTD_DCtx, FreeDecoder>;

constexpr std::size_t kMagicSize = 4;
constexpr std::size_t kBlockHeader = 3;

bool begins_frame(std::uint32_t magic) {
  return magic == ZSTD_MAGICNUMBER ||
         (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

class ZstdDecoder : public Filter {
 public:
  ZstdDecoder(ZstdDecoderContext context, std::uint64_t max_window)
      : context_(std::move(context)), max_window_(max_window) {}

  Result<FilterState> step(Bytes& in, std::span<std::byte>& out,
                           FilterStage stage) override {
    for (;;) {
      if (!in_frame_ && magic_size_ == 0 && decode_frame(in, out))
        continue;
      if (!in_frame_ && !TRY(begin_frame(in))) {
        if (stage != FilterStage::kLast)
          return FilterState::kNeedsInput;
        return end();
      }
      const std::size_t room = out.size();
      const bool had_input = !in.empty();
      TRY(decode_some(in, out));
      if (out.empty())
        return FilterState::kNeedsRoom;
      if (!in_frame_ || !in.empty())
        continue;
      if (stage != FilterStage::kLast)
        return FilterState::kNeedsInput;
      if (!had_input && out.size() == room)
        return breaks_off();
    }
  }

 private:
  // Decodes a frame that is complete in the input directly into `out`, a third
  // faster than through a window. If it fails, nothing is consumed, and
  // decoding it in pieces then reports the error.
  bool decode_frame(Bytes& in, std::span<std::byte>& out) {
    ZSTD_frameHeader header;
    if (in.size() < kMagicSize ||
        load_little_endian<std::uint32_t>(in.data()) != ZSTD_MAGICNUMBER ||
        ZSTD_getFrameHeader(&header, in.data(), in.size()) != 0 ||
        header.windowSize > std::bit_floor(max_window_))
      return false;
    const std::size_t size = ZSTD_findFrameCompressedSize(in.data(), in.size());
    if (ZSTD_isError(size) != 0)
      return false;
    const unsigned long long bound = ZSTD_decompressBound(in.data(), size);
    if (bound == ZSTD_CONTENTSIZE_ERROR || bound > out.size())
      return false;
    // No more room than that, or oversized RLE blocks would be accepted.
    const std::size_t made =
        ZSTD_decompressDCtx(context_.get(), out.data(),
                            static_cast<std::size_t>(bound), in.data(), size);
    if (ZSTD_isError(made) != 0)
      return false;
    in = in.subspan(size);
    out = out.subspan(made);
    used_ += size;
    made_ += made;
    ++frames_;
    return true;
  }

  // True once a frame began and its magic number was passed on. It is checked
  // here, as the library would also decode legacy formats that torch never
  // wrote.
  Result<bool> begin_frame(Bytes& in) {
    const std::size_t count = std::min(in.size(), kMagicSize - magic_size_);
    copy_bytes(in.first(count), std::span(magic_).subspan(magic_size_));
    magic_size_ += count;
    in = in.subspan(count);
    if (magic_size_ < kMagicSize)
      return false;
    if (!begins_frame(load_little_endian<std::uint32_t>(magic_.data())))
      return fail(ErrorKind::kCorrupt,
                  "the data at byte {} is not a zstd frame", used_);
    magic_size_ = 0;
    in_frame_ = true;
    wanted_ = kMagicSize + kBlockHeader;
    Bytes magic(magic_);
    std::span<std::byte> no_room;
    TRY(decode_some(magic, no_room));
    return true;
  }

  // The library asks for a block and the header of the next. It is given one
  // after the other, and nothing while it may have buffered output: on an error
  // it does not report what it had decoded.
  Result<> decode_some(Bytes& in, std::span<std::byte>& out) {
    std::size_t piece =
        wanted_ > kBlockHeader ? wanted_ - kBlockHeader : wanted_;
    if (holds_back_)
      piece = 0;
    ZSTD_inBuffer from{in.data(), std::min(in.size(), piece), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    const std::size_t status =
        ZSTD_decompressStream(context_.get(), &to, &from);
    used_ += from.pos;
    made_ += to.pos;
    in = in.subspan(from.pos);
    out = out.subspan(to.pos);
    if (ZSTD_isError(status) != 0)
      return broken(status);
    wanted_ = std::max<std::size_t>(status, 1);
    holds_back_ = status != 0 && to.size > 0 && to.pos == to.size;
    if (status == 0) {
      in_frame_ = false;
      ++frames_;
    }
    return {};
  }

  Result<FilterState> end() const {
    if (magic_size_ > 0)
      return breaks_off();
    if (frames_ == 0)
      return fail(ErrorKind::kCorrupt, "no zstd data: the input is empty");
    return FilterState::kDone;
  }

  tl::unexpected<Error> breaks_off() const {
    return fail(
        ErrorKind::kCorrupt,
        "the zstd data is truncated after byte {}, decoded to {} bytes; "
        "the writer was probably killed",
        used_ + magic_size_, made_);
  }

  tl::unexpected<Error> broken(std::size_t status) const {
    if (ZSTD_getErrorCode(status) == ZSTD_error_frameParameter_windowTooLarge)
      return fail(ErrorKind::kRefused,
                  "a zstd frame near byte {} needs a window of more than the "
                  "{} bytes allowed; give long={} or more",
                  used_, max_window_, std::bit_width(max_window_));
    return fail(ErrorKind::kCorrupt,
                "the zstd data is damaged near byte {}, decoded to {} bytes: "
                "{}",
                used_, made_, ZSTD_getErrorName(status));
  }

  ZstdDecoderContext context_;
  std::uint64_t max_window_;
  bool in_frame_ = false;
  std::array<std::byte, kMagicSize> magic_{};
  std::size_t magic_size_ = 0;  // how much of it has arrived
  std::size_t wanted_ = 0;
  bool holds_back_ = false;  // it may have buffered output: `out` was filled
  std::uint64_t frames_ = 0;
  std::uint64_t used_ = 0;
  std::uint64_t made_ = 0;
};

}  // namespace

Result<std::unique_ptr<Filter>> make_zstd_decoder(const Limits& limits) {
  ZstdDecoderContext context(ZSTD_createDCtx());
  const ZSTD_bounds bounds = ZSTD_dParam_getBounds(ZSTD_d_windowLogMax);
  const int wanted =
      static_cast<int>(std::bit_width(limits.max_window_bytes)) - 1;
  if (context == nullptr ||
      ZSTD_isError(ZSTD_DCtx_setParameter(
          context.get(), ZSTD_d_windowLogMax,
          std::clamp(wanted, bounds.lowerBound, bounds.upperBound))) != 0)
    return fail(ErrorKind::kRefused, "out of memory for decoding zstd");
  return std::make_unique<ZstdDecoder>(std::move(context),
                                       limits.max_window_bytes);
}

namespace {

struct FreeEncoder {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};
using ZstdEncoderContext = std::unique_ptr<ZSTD_CCtx, FreeEncoder>;

struct ZstdOptions {
  int level = 3;  // torch's default
  int threads = 1;
  int window_log = 0;  // 0: no long-distance matching
  bool checksum = true;
};

constexpr int kMinLevel = -50;
constexpr int kMinWindowLog = 20;
constexpr int kMaxWindowLog = 31;
constexpr int kMaxThreads = 256;
// With several threads, each encodes sections of this size as frames of their
// own: large enough to cost little compression.
constexpr std::size_t kSection = 4 << 20;

tl::unexpected<Error> failed(std::size_t status) {
  return fail(ErrorKind::kIo, "zstd cannot encode: {}",
              ZSTD_getErrorName(status));
}

Result<ZstdEncoderContext> make_context(const ZstdOptions& options) {
  ZstdEncoderContext context(ZSTD_createCCtx());
  if (context == nullptr)
    return fail(ErrorKind::kRefused, "out of memory for encoding zstd");
  const auto set = [&](ZSTD_cParameter parameter, int value) -> Result<> {
    const std::size_t status =
        ZSTD_CCtx_setParameter(context.get(), parameter, value);
    if (ZSTD_isError(status) != 0)
      return failed(status);
    return {};
  };
  TRY(set(ZSTD_c_compressionLevel, options.level));
  TRY(set(ZSTD_c_checksumFlag, options.checksum ? 1 : 0));
  if (options.window_log > 0) {
    TRY(set(ZSTD_c_enableLongDistanceMatching, 1));
    TRY(set(ZSTD_c_windowLog, options.window_log));
  }
  return context;
}

// One frame, on the calling thread.
class ZstdEncoder : public Filter {
 public:
  explicit ZstdEncoder(ZstdEncoderContext context)
      : context_(std::move(context)) {}

  Result<FilterState> step(Bytes& in, std::span<std::byte>& out,
                           FilterStage stage) override {
    const ZSTD_EndDirective how = stage == FilterStage::kMore ? ZSTD_e_continue
                                  : stage == FilterStage::kFlush ? ZSTD_e_flush
                                                                 : ZSTD_e_end;
    for (;;) {
      ZSTD_inBuffer from{in.data(), in.size(), 0};
      ZSTD_outBuffer to{out.data(), out.size(), 0};
      const std::size_t left =
          ZSTD_compressStream2(context_.get(), &to, &from, how);
      in = in.subspan(from.pos);
      out = out.subspan(to.pos);
      if (ZSTD_isError(left) != 0)
        return failed(left);
      if (how == ZSTD_e_continue ? in.empty() : left == 0)
        return stage == FilterStage::kLast ? FilterState::kDone
                                           : FilterState::kNeedsInput;
      if (out.empty())
        return FilterState::kNeedsRoom;
    }
  }

 private:
  ZstdEncoderContext context_;
};

Result<std::vector<std::byte>> encode_section(std::vector<std::byte> section,
                                              ZstdOptions options) {
  const ZstdEncoderContext context = TRY(make_context(options));
  std::vector<std::byte> frame(ZSTD_compressBound(section.size()));
  const std::size_t size =
      ZSTD_compress2(context.get(), frame.data(), frame.size(), section.data(),
                     section.size());
  if (ZSTD_isError(size) != 0)
    return failed(size);
  frame.resize(size);
  return frame;
}

// One frame per section, several encoded at once: Debian's static libzstd is
// built without threads. The output does not depend on their number.
class ParallelZstdEncoder : public Filter {
 public:
  explicit ParallelZstdEncoder(const ZstdOptions& options)
      : options_(options) {}

  Result<FilterState> step(Bytes& in, std::span<std::byte>& out,
                           FilterStage stage) override {
    for (;;) {
      give(out);
      if (out.empty())
        return FilterState::kNeedsRoom;
      gather(in, section_, kSection);
      const bool to_the_end = in.empty() && stage != FilterStage::kMore;
      const auto threads = static_cast<std::size_t>(options_.threads);
      const bool has_last =
          to_the_end &&
          (!section_.empty() || (stage == FilterStage::kLast && !started_));
      if (jobs_.size() < threads && (section_.size() == kSection || has_last)) {
        start();
      } else if (!jobs_.empty() &&
                 (section_.size() == kSection || to_the_end)) {
        frame_ = TRY(jobs_.front().get());
        given_ = 0;
        jobs_.pop_front();
      } else {
        return stage == FilterStage::kLast ? FilterState::kDone
                                           : FilterState::kNeedsInput;
      }
    }
  }

 private:
  void start() {
    jobs_.push_back(std::async(std::launch::async, encode_section,
                               std::exchange(section_, {}), options_));
    started_ = true;
  }

  void give(std::span<std::byte>& out) {
    const std::size_t count = std::min(out.size(), frame_.size() - given_);
    std::copy_n(frame_.data() + given_, count, out.data());
    given_ += count;
    out = out.subspan(count);
  }

  ZstdOptions options_;
  std::vector<std::byte> section_;
  std::deque<std::future<Result<std::vector<std::byte>>>> jobs_;
  std::vector<std::byte> frame_;
  std::size_t given_ = 0;
  bool started_ = false;
};

Result<std::unique_ptr<Filter>> make_encoder(const ZstdOptions& options) {
  if (options.threads > 1)
    return std::make_unique<ParallelZstdEncoder>(options);
  return std::make_unique<ZstdEncoder>(TRY(make_context(options)));
}

Result<ZstdOptions> options_from(const TransformParameters& parameters) {
  ZstdOptions options;
  options.level = static_cast<int>(TRY(
      parameters.integer("level", options.level, kMinLevel, ZSTD_maxCLevel())));
  options.threads = static_cast<int>(
      TRY(parameters.integer("threads", options.threads, 1, kMaxThreads)));
  options.window_log = static_cast<int>(
      TRY(parameters.integer("long", 0, kMinWindowLog, kMaxWindowLog)));
  options.checksum = TRY(parameters.integer("checksum", 1, 0, 1)) == 1;
  return options;
}

}  // namespace

ExtensionType zstd_extension() {
  return {
      .registry_name = "stream.zstd",
      .summary = "Zstandard, as torch writes it",
      .parameters =
          {{"level",
            fmt::format("{} to {}; default 3", kMinLevel, ZSTD_maxCLevel())},
           {"threads", "more than 1: one frame per 4 MiB, encoded in parallel"},
           {"long",
            "20 to 31: window of 2^long bytes; from 28 decode with it, too"},
           {"checksum", "0 or 1, default 1; torch writes none"}},
      .from_descriptor = [](const std::string& descriptor,
                            const TransformSettings& settings)
          -> Result<std::unique_ptr<Extension>> {
        const ZstdOptions options = TRY(options_from(settings.parameters));
        Limits limits = settings.limits;
        if (options.window_log > 0)
          limits.max_window_bytes = std::max(
              limits.max_window_bytes, std::uint64_t{1} << options.window_log);
        return std::make_unique<StreamTransform>(
            descriptor, [options] { return make_encoder(options); },
            [limits] { return make_zstd_decoder(limits); });
      }};
}

}  // namespace postflight
