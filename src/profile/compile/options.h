#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "base/environment.h"
#include "base/log.h"

namespace postflight {

// The name that the reference logs under.
constexpr const char* kCompileChannel = "strobelight_compile_time_profiler";

// How compile phases are profiled. From the environment, the names of torch
// (COMPILE_STROBELIGHT_...) are understood and those of postflight beat them;
// a value that makes no sense is warned of and left at its default.
struct CompileProfileOptions {
  // COMPILE_STROBELIGHT_FRAME_FILTER, POSTFLIGHT_FRAME_FILTER: only frames
  // whose id begins so are profiled; with `frame_filter_full`
  // (POSTFLIGHT_FRAME_FILTER_FULL=1), those it matches as a whole.
  std::optional<std::string> frame_filter = {};
  bool frame_filter_full = false;
  // POSTFLIGHT_FRAME_EXCLUDE: and of those, not these.
  std::optional<std::string> frame_exclude = {};
  // COMPILE_STROBELIGHT_MAX_STACK_LENGTH, POSTFLIGHT_MAX_STACK_LENGTH; up to
  // 4096
  std::size_t max_stack_length = 500;
  // COMPILE_STROBELIGHT_MAX_PROFILE_TIME, POSTFLIGHT_MAX_PROFILE_TIME, in s
  std::chrono::seconds max_profile_time{1800};
  // COMPILE_STROBELIGHT_SAMPLE_RATE (cycles between samples, whatever its name
  // says), POSTFLIGHT_SAMPLE_RATE (as --rate); 10^7 cycles
  std::optional<std::chrono::nanoseconds> sample_each = {};
  // POSTFLIGHT_TAGS, separated by commas
  std::set<std::string> tags = {};
  // POSTFLIGHT_URL_COMMAND
  std::string url_command = {};
  // USER or USERNAME
  std::string user = {};
  std::int32_t rank = -1;

  bool operator==(const CompileProfileOptions&) const = default;
};

CompileProfileOptions compile_profile_options(const Environment& environment,
                                              Log& log);

}  // namespace postflight
