#include "stream/codec/built_in.h"
#include "stream/codec/zstd_filter.h"
#include "stream/pending.h"

#include <bit>
#include <deque>
#include <future>
#include <utility>

#include <zstd.h>

namespace postflight {
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
