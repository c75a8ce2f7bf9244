#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace postflight {

// "0 B", "999 B", "1.4 GB", "350 MB": decimal units, as for disks.
std::string human_bytes(std::uint64_t bytes);

// "80 us", "350 ms", "4.2 s", "2 min 5 s", "3 h 10 min", "2 d 4 h".
std::string human_duration(std::chrono::nanoseconds duration);

}  // namespace postflight
