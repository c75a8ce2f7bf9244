#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/output.h"
#include "base/terminal.h"
#include "profile/log/profile.h"
#include "profile/log/summary.h"

namespace postflight {

struct ProfileReportOptions {
  // The files that the profile was read from, for titles and for the advice at
  // the end; empty: no advice.
  std::vector<std::string> files = {};
  Terminal terminal = {};
  std::size_t top = 15;  // text: functions shown
  // text: also what the standard library, torch and imports do inside, and
  // threads that only wait
  bool all = false;
  bool lines = false;  // text: a table by line, not by function
  bool phases = true;  // collapsed: the phase as outermost frame
};

// A format that profiles are shown in or exported to.
struct ProfileFormat {
  std::string_view name;   // as in --to NAME
  std::string_view title;  // for help
  void (*write)(const Profile& profile, const ProfileReportOptions& options,
                Output& out);
};

// All of them, the default first.
std::span<const ProfileFormat> profile_formats();
// `name` must be one of them.
const ProfileFormat& profile_format(std::string_view name);

// Where the time went, on one screen.
void write_profile_text(const Profile& profile,
                        const ProfileReportOptions& options, Output& out);

// postflight.profile/1: the same facts, and every function.
void write_profile_json(const Profile& profile,
                        const ProfileReportOptions& options, Output& out);

// One line for each stack of each thread, with its time in microseconds:
// "process;thread;phase;outermost;...;innermost TIME". What would break the
// line or add a frame is escaped.
void write_profile_collapsed(const Profile& profile,
                             const ProfileReportOptions& options, Output& out);

// The file format of speedscope: a profile for each phase of each thread.
void write_profile_speedscope(const Profile& profile,
                              const ProfileReportOptions& options, Output& out);

// The frames of a stack, the outermost first.
std::vector<std::uint32_t> frames_of(const Profile& profile,
                                     std::uint32_t stack);
// "name (file.py:12)", escaped.
std::string frame_text(const Profile& profile, const ProfileFrame& frame);
// "rank 3, 119 python3 train.py", escaped.
std::string process_text(const Profile& profile, const ProfileThread& thread);
// "rank 3, process 119, thread 120 (worker)", escaped.
std::string thread_text(const Profile& profile, const ProfileThread& thread);

}  // namespace postflight
