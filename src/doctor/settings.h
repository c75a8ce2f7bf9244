#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"

namespace postflight {

// A variable that decides what a job leaves behind.
struct SettingTraits {
  enum class Form : std::uint8_t { kNumber, kSwitch, kPath };

  std::string_view name;
  // Earlier names of the same, the latest first; torch still reads them.
  std::vector<std::string_view> old_names = {};
  bool since_2_15 = false;  // the new name, of torch 2.15
  Form form = Form::kNumber;
  std::string_view unset;    // what torch does then: "2000"
  std::string_view meaning;  // "entries that the ring of each rank keeps"
};

std::span<const SettingTraits> setting_traits();

// The variables of a job by name; those that nobody asks for may be missing.
using JobEnvironment = std::map<std::string, std::string, std::less<>>;

// Of /proc/PID/environ: NAME=VALUE, each ended by a null character.
JobEnvironment environment_of_process(std::string_view text);

struct Setting {
  const SettingTraits* traits = nullptr;
  std::optional<std::string> value;  // nothing: unset
  std::string set_as;                // the name under which it was found
};

// The settings in the order of the table, and what is wrong with them: names
// that are unknown or old, values that are not valid, and those that make
// others useless.
struct CheckedSettings {
  std::vector<Setting> settings = {};
  std::vector<Finding> findings = {};

  const Setting& find(std::string_view name) const;
};
CheckedSettings check_settings(const JobEnvironment& environment);

// The prefix of the names of dumps: "/tmp/nccl_trace_rank_", or nothing if it
// depends on variables that are not known.
std::optional<std::string> dump_prefix(const CheckedSettings& checked,
                                       const JobEnvironment& environment);

}  // namespace postflight
