#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/output.h"
#include "base/terminal.h"
#include "profile/log/profile.h"
#include "profile/log/summary.h"

namespace postflight {

struct ProfileReportOptions {
  std::size_t top = 15;  // functions shown
  // How the files are called in the advice at the end; empty: no advice.
  std::vector<std::string> files = {};
  bool phases = true;  // collapsed: the phase as outermost frame
};

// Where the time went, on one screen.
void write_profile_text(const Profile& profile,
                        const ProfileReportOptions& options,
                        const Terminal& terminal, Output& out);

// postflight.profile/1: the same, and every function.
void write_profile_json(const Profile& profile, Output& out);

// A line for each stack: "outermost;...;innermost COUNT". What would break the
// line or add a frame is escaped.
void write_profile_collapsed(const Profile& profile,
                             const ProfileReportOptions& options, Output& out);

// The file format of speedscope: a profile for each phase of each thread.
void write_profile_speedscope(const Profile& profile, std::string_view name,
                              Output& out);

// "name (file.py:12)", escaped.
std::string frame_text(const Profile& profile, const ProfileFrame& frame);
// "rank 3, thread 120 (worker)", escaped.
std::string thread_text(const Profile& profile, const ProfileThread& thread);

}  // namespace postflight
