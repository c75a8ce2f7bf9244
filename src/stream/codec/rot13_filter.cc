#include "stream/codec/built_in.h"

#include <algorithm>
#include <cstdint>

namespace postflight {
namespace {

// torch's example is called rot13 but swaps the case of ASCII letters; to read
// what it wrote, this does the same. It is its own inverse.
class Rot13Filter : public Filter {
 public:
  Result<FilterState> step(Bytes& in, std::span<std::byte>& out,
                           FilterStage stage) override {
    const std::size_t count = std::min(in.size(), out.size());
    const std::byte* const from = in.data();
    std::byte* const to = out.data();
    for (std::size_t i = 0; i < count; ++i)
      to[i] = swapped_case(from[i]);
    in = in.subspan(count);
    out = out.subspan(count);
    if (!in.empty())
      return FilterState::kNeedsRoom;
    return stage == FilterStage::kLast ? FilterState::kDone
                                       : FilterState::kNeedsInput;
  }

  bool keeps_places() const override { return true; }

 private:
  // Branchless, so that compilers vectorise it.
  static std::byte swapped_case(std::byte byte) {
    const auto lower =
        static_cast<std::uint8_t>(static_cast<std::uint8_t>(byte) | 0x20);
    const bool letter = static_cast<std::uint8_t>(lower - 'a') < 26;
    return byte ^ static_cast<std::byte>(letter ? 0x20 : 0);
  }
};

Result<std::unique_ptr<Filter>> make_filter() {
  return std::make_unique<Rot13Filter>();
}

}  // namespace

ExtensionType rot13_extension() {
  return {
      .registry_name = "stream.rot13",
      .summary = "swaps the case of ASCII letters, as torch's example does",
      .seekable = true,
      .from_descriptor =
          [](const std::string& descriptor,
             const TransformSettings&) -> Result<std::unique_ptr<Extension>> {
        return std::make_unique<StreamTransform>(descriptor, make_filter,
                                                 make_filter);
      }};
}

}  // namespace postflight
