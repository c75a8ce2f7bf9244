#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "synthetic/cluster/program.h"
#include "synthetic/cluster/run.h"
#include "synthetic/truth.h"

namespace postflight::synthetic::cluster {

enum class Trouble : std::uint8_t {
  kNone,
  kSlowLink,   // nobody is at fault
  kStraggler,  // its host is late in each step
  kHostStops,
  kHostStopsBeforeTransfer,
  kNodeStops,
  kRaises,        // and dumps on its way out
  kRaisesNoDump,  // and leaves without one
  kKilled,        // without a dump
  kNodeKilled,
  kSeveralStop,  // two ranks, wherever they are
  kDeviceStops,
  kDeviceStopsBeforeBroadcast,
  kDeviceStopsBeforeTransfer,
  kSeveralDevicesStop,
  kDeviceFails,    // in an operation that the others see end
  kHostAndDevice,  // a host stops, and another rank's device
  kStuck,          // a collective that all joined
  kStuckTransfer,
  kType,
  kTypeUnlaunched,  // the host blocks in launching the wrong operation
  kSize,
  kSizeUnnoticed,  // the hang comes later
  kDtype,
  kSkips,
  kAdds,
  kOrder,
  kWrongGroup,
  kDropsSend,
  kDropsReceive,
  kTransferSizes,
  kLeavesLoop,  // has fewer batches than the others
};
constexpr std::size_t kTroubles = 32;
std::string_view trouble_name(Trouble trouble);

// What a fault does besides changing the program.
struct Plan {
  Truth truth;
  Differing differing = Differing::kAllStick;
  std::vector<int> no_dump;
  std::vector<int> early;     // dump when the fault hits them
  std::vector<int> involved;  // without their dumps no diagnosis is possible
  int late_rank = -1;
  int slow_group = -1;
};

// Puts the fault into the second half of the program; nothing if it has no
// place for it. `timing`: start times will be recorded.
std::optional<Plan> make_trouble(Trouble trouble, bool timing, Program& program,
                                 Random& random);

}  // namespace postflight::synthetic::cluster
