#include "profile/native/elf_image.h"

#include <cstddef>
#include <cstdint>

using namespace postflight;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const Result<ElfImage> image =
      ElfImage::parse(std::as_bytes(std::span(data, size)));
  if (!image)
    return 0;
  static_cast<void>(image->symbol("_PyRuntime"));
  static_cast<void>(image->functions());
  static_cast<void>(image->build_id());
  static_cast<void>(image->segment_pages());
  return 0;
}
