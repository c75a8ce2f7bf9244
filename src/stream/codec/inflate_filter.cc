#include "stream/codec/inflate_filter.h"

#include <cstdint>
#include <string_view>

namespace postflight {
namespace {

class InflateFilter : public Filter {
 public:
  explicit InflateFilter(DeflateFormat format)
      : format_(format), inflater_(format) {}

  bool ready() const { return inflater_.ready(); }

  Result<FilterState> step(Bytes& in, std::span<std::byte>& out,
                           FilterStage stage) override {
    for (;;) {
      if (between_members_ && !TRY(begin_member(in)))
        return stage == FilterStage::kLast ? TRY(end()) : needs_input();
      const std::size_t room = out.size();
      const bool had_input = !in.empty();
      const Inflater::Status status = inflate_some(in, out);
      if (status == Inflater::Status::kEnd) {
        ++members_;
        between_members_ = true;
      } else if (status == Inflater::Status::kDamaged) {
        return broken();
      }
      if (out.empty())
        return FilterState::kNeedsRoom;
      if (between_members_)
        continue;
      if (!in.empty())
        continue;
      if (stage == FilterStage::kLast && !had_input && out.size() == room)
        return fail(ErrorKind::kCorrupt,
                    "the {} data is truncated after byte {}, decoded to {} "
                    "bytes; the writer was probably killed",
                    name(), used_, made_);
      return stage == FilterStage::kLast ? FilterState::kNeedsRoom
                                         : needs_input();
    }
  }

 private:
  std::string_view name() const {
    return format_ == DeflateFormat::kGzip ? "gzip" : "zlib";
  }

  static FilterState needs_input() { return FilterState::kNeedsInput; }

  // Skips to the next member; false if none is there yet.
  Result<bool> begin_member(Bytes& in) {
    // Tape and block-device writers pad with zeros, which gzip ignores.
    while (members_ > 0 && !in.empty() && in.front() == std::byte{0})
      use_one(in);
    if (in.empty())
      return false;
    if (members_ > 0 && format_ == DeflateFormat::kZlib)
      return fail(ErrorKind::kCorrupt,
                  "bytes follow the end of the zlib data at byte {}", used_);
    if (members_ > 0 && !inflater_.reset())
      return broken();
    between_members_ = false;
    member_start_ = used_;
    member_made_ = made_;
    return true;
  }

  Result<FilterState> end() const {
    if (members_ == 0)
      return fail(ErrorKind::kCorrupt, "no {} data: the input is empty",
                  name());
    return FilterState::kDone;
  }

  Inflater::Status inflate_some(Bytes& in, std::span<std::byte>& out) {
    const std::size_t in_before = in.size();
    const std::size_t out_before = out.size();
    const Inflater::Status status = inflater_.step(in, out);
    used_ += in_before - in.size();
    made_ += out_before - out.size();
    return status;
  }

  void use_one(Bytes& in) {
    in = in.subspan(1);
    ++used_;
  }

  tl::unexpected<Error> broken() const {
    if (members_ > 0 && made_ == member_made_ && used_ - member_start_ <= 2)
      return fail(ErrorKind::kCorrupt,
                  "trailing data after the gzip data at byte {} is not gzip",
                  member_start_);
    return fail(ErrorKind::kCorrupt,
                "the {} data is damaged near byte {}, decoded to {} bytes: {}",
                name(), used_, made_, inflater_.message());
  }

  DeflateFormat format_;
  Inflater inflater_;
  bool between_members_ = true;
  std::uint64_t members_ = 0;
  std::uint64_t used_ = 0;
  std::uint64_t made_ = 0;
  std::uint64_t member_start_ = 0;
  std::uint64_t member_made_ = 0;
};

}  // namespace

Result<std::unique_ptr<Filter>> make_inflate_filter(DeflateFormat format) {
  auto filter = std::make_unique<InflateFilter>(format);
  if (!filter->ready())
    return fail(ErrorKind::kRefused, "out of memory for inflating");
  return filter;
}

}  // namespace postflight
