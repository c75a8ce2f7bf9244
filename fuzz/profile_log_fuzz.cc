#include "profile/log/log.h"
#include "report/profile/report.h"

#include <cstddef>
#include <cstdint>

using namespace postflight;

// Any profile that can be read can be exported in every format.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  ProfileBuilder builder;
  if (!read_profile_log(std::as_bytes(std::span(data, size)), "log", {},
                        builder))
    return 0;
  Output out([](std::string_view) {});
  for (const ProfileFormat& format : profile_formats())
    format.write(builder.profile(), {}, out);
  return 0;
}
