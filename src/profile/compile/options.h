#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "base/environment.h"
#include "base/log.h"

namespace postflight {

// The name of torch's logger, so that tools that read its lines find ours.
constexpr const char* kCompileChannel = "strobelight_compile_time_profiler";

// How compile phases are profiled. The environment variables of torch
// (COMPILE_STROBELIGHT_...) are supported, and those of postflight override
// them; invalid values are logged and ignored.
struct CompileProfileOptions {
  // COMPILE_STROBELIGHT_FRAME_FILTER, POSTFLIGHT_FRAME_FILTER: profile only
  // frames whose id starts with a match; with `frame_filter_full`
  // (POSTFLIGHT_FRAME_FILTER_FULL=1), those whose whole id matches.
  std::optional<std::string> frame_filter = {};
  bool frame_filter_full = false;
  // POSTFLIGHT_FRAME_EXCLUDE: except those whose id starts with a match.
  std::optional<std::string> frame_exclude = {};
  // COMPILE_STROBELIGHT_MAX_STACK_LENGTH, POSTFLIGHT_MAX_STACK_LENGTH; up to
  // 4096
  std::size_t max_stack_length = 500;
  // COMPILE_STROBELIGHT_MAX_PROFILE_TIME, POSTFLIGHT_MAX_PROFILE_TIME, in s
  std::chrono::seconds max_profile_time{1800};
  // COMPILE_STROBELIGHT_SAMPLE_RATE (despite its name, cycles between samples),
  // POSTFLIGHT_SAMPLE_RATE (as --rate); default: 10^7 cycles
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
