#pragma once

#include <string>

namespace postflight {

struct DumpOptions {
  int rank = 0;
  int world_size = 8;
  int entries = 2000;
  int frames = 20;  // of each entry's stack
};

// The flight-recorder dump of one rank of a healthy job with tensor and data
// parallel groups, in the dialect of torch's own pickler.
std::string synthetic_dump(const DumpOptions& options);

}  // namespace postflight
