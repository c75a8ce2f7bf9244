#include "profile/process/map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postflight {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ProcessMap, ReadsTheKernelsLines) {
  EXPECT_THAT(
      parse_mappings(
          "00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/a b\n"
          "7f00-8000 rw-p 00000000 00:00 0 \n"
          "7ffc0000-7ffd0000 rw-p 00000000 00:00 0            [stack]\n"),
      ElementsAre(Mapping{0x400000, 0x452000, 0x1000, true, "/usr/bin/a b"},
                  Mapping{0x7f00, 0x8000, 0, false, ""},
                  Mapping{0x7ffc0000, 0x7ffd0000, 0, false, ""}));
}

TEST(ProcessMap, SkipsOtherLines) {
  EXPECT_THAT(parse_mappings("\nx\n1-\n5-4 r--p 0 0 0\n12-34\n12-34 r\n"),
              IsEmpty());
}

}  // namespace
}  // namespace postflight
