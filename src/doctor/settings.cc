#include "doctor/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/suggestion.h"

namespace postflight {
namespace {

using enum SettingTraits::Form;

// Of torch 2.11 to 2.15.
const std::array kSettings = {
    SettingTraits{.name = "TORCH_FR_BUFFER_SIZE",
                  .old_names = {"TORCH_NCCL_TRACE_BUFFER_SIZE",
                                "TORCH_TRACE_BUFFER_SIZE"},
                  .unset = "2000",
                  .meaning = "entries that each rank keeps"},
    SettingTraits{.name = "TORCH_FR_DUMP_ON_TIMEOUT",
                  .old_names = {"TORCH_NCCL_DUMP_ON_TIMEOUT"},
                  .since_2_15 = true,
                  .form = kSwitch,
                  .unset = "1",
                  .meaning = "dump when the watchdog sees a time-out"},
    SettingTraits{.name = "TORCH_FR_DUMP_TEMP_FILE",
                  .old_names = {"TORCH_NCCL_DEBUG_INFO_TEMP_FILE"},
                  .form = kPath,
                  .unset = "~/.cache/torch/comm_lib_trace_rank_",
                  .meaning = "where dumps go; the rank is appended"},
    SettingTraits{.name = "TORCH_FR_DUMP_DYNAMIC_FILE_NAME",
                  .form = kSwitch,
                  .unset = "0",
                  .meaning = "read that name again for every dump"},
    SettingTraits{.name = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE",
                  .form = kPath,
                  .unset = "none",
                  .meaning = "pipe that asks for a dump; <rank>.pipe is "
                             "appended"},
    SettingTraits{.name = "TORCH_INCLUDE_STACK_TRACE",
                  .form = kSwitch,
                  .unset = "1",
                  .meaning = "lines of code in the dump"},
    SettingTraits{.name = "TORCH_FR_CPP_STACK",
                  .old_names = {"TORCH_NCCL_TRACE_CPP_STACK"},
                  .form = kSwitch,
                  .unset = "0",
                  .meaning = "C++ frames, too; slow"},
    SettingTraits{.name = "TORCH_INCLUDE_ONLY_ACTIVE",
                  .form = kSwitch,
                  .unset = "0",
                  .meaning = "leave out operations that have finished"},
    SettingTraits{.name = "TORCH_NCCL_EXTRA_DUMP_ON_EXEC",
                  .form = kSwitch,
                  .unset = "0",
                  .meaning = "dump when a rank raises an exception, too"},
    SettingTraits{.name = "TORCH_NCCL_ENABLE_TIMING",
                  .form = kSwitch,
                  .unset = "0",
                  .meaning = "start times: tells a GPU that is stuck"},
    SettingTraits{.name = "TORCH_NCCL_ENABLE_MONITORING",
                  .form = kSwitch,
                  .unset = "1",
                  .meaning = "the thread that dumps"},
    SettingTraits{.name = "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
                  .unset = "480",
                  .meaning = "seconds until a watchdog counts as hung"},
    SettingTraits{.name = "TORCH_FR_WAIT_TIMEOUT_DUMP_MILSEC",
                  .old_names = {"TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC"},
                  .since_2_15 = true,
                  .unset = "15000",
                  .meaning = "milliseconds that dumping may take"},
    SettingTraits{.name = "TORCH_NCCL_COORD_CHECK_MILSEC",
                  .unset = "1000",
                  .meaning = "how often ranks look for another's signal"},
    SettingTraits{.name = "TORCH_NCCL_ASYNC_ERROR_HANDLING",
                  .old_names = {"NCCL_ASYNC_ERROR_HANDLING"},
                  .unset = "3",
                  .meaning = "what the watchdog does about a time-out"},
    SettingTraits{.name = "TORCHCOMM_FR_BUFFER_SIZE",
                  .unset = "none",
                  .meaning = "torchcomms: entries that each rank keeps"},
    SettingTraits{.name = "TORCHCOMM_FR_DUMP_TEMP_FILE",
                  .form = kPath,
                  .unset = "~/.cache/torchcomm_fr_trace_",
                  .meaning = "torchcomms: where dumps go"}};

// Theirs, too, but they do not change what a job leaves behind.
constexpr std::array<std::string_view, 20> kOthers = {
    "TORCH_NCCL_BLOCKING_WAIT",
    "TORCH_NCCL_DESYNC_DEBUG",
    "TORCH_NCCL_AVOID_RECORD_STREAMS",
    "TORCH_NCCL_HIGH_PRIORITY",
    "TORCH_NCCL_USE_COMM_NONBLOCKING",
    "TORCH_NCCL_NONBLOCKING_TIMEOUT",
    "TORCH_NCCL_CUDA_EVENT_CACHE",
    "TORCH_NCCL_NAN_CHECK",
    "TORCH_NCCL_RETHROW_CUDA_ERRORS",
    "TORCH_NCCL_PROPAGATE_ERROR",
    "TORCH_NCCL_LOG_CPP_STACK_ON_UNCLEAN_SHUTDOWN",
    "TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK",
    "TORCH_NCCL_SHOW_EAGER_INIT_P2P_SERIALIZATION_WARNING",
    "TORCH_NCCL_BCAST_UNIQUEID",
    "TORCH_NCCL_RANKS_PER_ROOT",
    "TORCH_NCCL_ABORT_IN_DESTROY_PG",
    "TORCH_NCCL_USE_COMM_SPLIT",
    "TORCH_NCCL_ABORT_ON_TIMEOUT",
    "TORCH_NCCL_TIMEOUT_SEC",
    "TORCH_FR_TRACE_VERBOSE_OUTPUT"};

// A ring of more entries than this was meant in bytes, or costs more than it
// can tell: torchtitan, the most generous user known, keeps 20,000.
constexpr std::uint64_t kAbsurdEntries = 500'000;
constexpr std::uint64_t kFewEntries = 100;

bool is_family(std::string_view name) {
  for (const std::string_view prefix :
       {"TORCH_FR_", "TORCH_NCCL_", "TORCHCOMM_FR_", "TORCH_INCLUDE_",
        "TORCH_TRACE_"})
    if (name.starts_with(prefix))
      return true;
  return false;
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return number;
}

// As torch reads a switch.
std::optional<bool> switch_of(std::string_view text) {
  const std::string lower = lowered(text);
  for (const std::string_view on : {"1", "true", "yes", "y", "t"})
    if (lower == on)
      return true;
  for (const std::string_view off : {"0", "false", "no", "n", "f"})
    if (lower == off)
      return false;
  return std::nullopt;
}

// Finds the settings and says what is wrong with them.
class Check {
 public:
  explicit Check(const JobEnvironment& environment)
      : environment_(environment) {}

  CheckedSettings run() {
    for (const SettingTraits& traits : kSettings)
      add(traits);
    for (const auto& [name, value] : environment_)
      if (is_family(name))
        check_name(name);
    for (const Setting& setting : checked_.settings)
      check_value(setting);
    check_ring();
    check_dumping();
    check_contents();
    std::ranges::stable_sort(checked_.findings, std::ranges::greater{},
                             &Finding::severity);
    return std::move(checked_);
  }

 private:
  void tell(std::string_view kind, Severity severity, std::string message,
            std::string_view where) {
    checked_.findings.push_back({.kind = std::string(kind),
                                 .severity = severity,
                                 .message = std::move(message),
                                 .where = std::string(where)});
  }

  void add(const SettingTraits& traits) {
    Setting setting = {.traits = &traits, .value = {}, .set_as = {}};
    std::vector<std::string_view> names = {traits.name};
    names.insert(names.end(), traits.old_names.begin(), traits.old_names.end());
    for (const std::string_view name : names) {
      const auto found = environment_.find(name);
      if (found == environment_.end())
        continue;
      if (!setting.value) {
        setting.value = found->second;
        setting.set_as = name;
      } else if (*setting.value != found->second) {
        tell("contradicting_variables", Severity::kWarning,
             fmt::format("{}={} and {}={} are the same setting; keep one",
                         setting.set_as, *setting.value, name, found->second),
             name);
      }
    }
    if (setting.value && setting.set_as == traits.name && traits.since_2_15 &&
        !environment_.contains(traits.old_names[0]))
      tell("new_variable", Severity::kNote,
           fmt::format("{} is read by torch 2.15 and later, and as {} by older "
                       "versions; set both if you don't know which will run",
                       traits.name, traits.old_names[0]),
           traits.name);
    if (setting.value && setting.set_as != traits.name)
      tell("deprecated_variable", Severity::kNote,
           fmt::format("{} is the old name of {}; newer versions of torch read "
                       "both, older ones only this",
                       setting.set_as, traits.name),
           setting.set_as);
    checked_.settings.push_back(std::move(setting));
  }

  void check_name(const std::string& name) {
    std::string_view closest;
    std::size_t least = 4;  // more letters are another name
    const auto known = [&](std::string_view one) {
      const std::size_t distance = edit_distance(name, one);
      if (distance < least) {
        least = distance;
        closest = one;
      }
      return distance == 0;
    };
    for (const SettingTraits& traits : kSettings) {
      if (known(traits.name) || std::ranges::any_of(traits.old_names, known))
        return;
    }
    if (std::ranges::any_of(kOthers, known))
      return;
    tell("unknown_variable",
         closest.empty() ? Severity::kNote : Severity::kWarning,
         closest.empty()
             ? fmt::format("{} is not known here; torch ignores what it does "
                           "not know",
                           name)
             : fmt::format("{} is unknown, and torch ignores it; did you mean "
                           "{}?",
                           name, closest),
         name);
  }

  void check_value(const Setting& setting) {
    if (!setting.value || setting.value->find('$') != std::string::npos)
      return;
    const bool valid = setting.traits->form == kNumber
                           ? number_of(*setting.value).has_value()
                       : setting.traits->form == kSwitch
                           ? switch_of(*setting.value).has_value()
                           : !setting.value->empty();
    if (!valid)
      tell("invalid_value", Severity::kError,
           fmt::format("{}='{}' is not valid: give {}", setting.set_as,
                       *setting.value,
                       setting.traits->form == kNumber   ? "a whole number"
                       : setting.traits->form == kSwitch ? "0 or 1"
                                                         : "a path"),
           setting.set_as);
  }

  const Setting& setting(std::string_view name) const {
    return checked_.find(name);
  }
  bool is_on(std::string_view name) const {
    const Setting& one = setting(name);
    return switch_of(one.value.value_or(std::string(one.traits->unset)))
        .value_or(false);
  }
  std::optional<std::uint64_t> number(std::string_view name) const {
    const Setting& one = setting(name);
    return number_of(one.value.value_or(std::string(one.traits->unset)));
  }

  void check_ring() {
    const Setting& ring = setting("TORCH_FR_BUFFER_SIZE");
    // torch_npu has a family of its own.
    if (!ring.value && environment_.contains("TORCH_HCCL_TRACE_BUFFER_SIZE")) {
      tell("other_recorder", Severity::kNote,
           "TORCH_HCCL_* are variables of torch_npu and not checked here", "");
      return;
    }
    if (!ring.value) {
      tell("missing_variable", Severity::kWarning,
           "TORCH_FR_BUFFER_SIZE is not set: torch 2.11 keeps 2000 entries, "
           "but older versions record nothing; set it, and "
           "TORCH_NCCL_TRACE_BUFFER_SIZE for them",
           "TORCH_FR_BUFFER_SIZE");
      return;
    }
    const auto entries = number_of(*ring.value);
    if (entries == 0U)
      tell("recorder_off", Severity::kError,
           fmt::format("{}=0 turns the flight recorder off: no dump will have "
                       "entries; set it to 2000 or more",
                       ring.set_as),
           ring.set_as);
    else if (entries && *entries > kAbsurdEntries)
      tell("absurd_value", Severity::kWarning,
           fmt::format("{}={} counts entries, not bytes: 2000 to 20000 are "
                       "enough",
                       ring.set_as, *entries),
           ring.set_as);
    else if (entries && *entries < kFewEntries)
      tell("absurd_value", Severity::kWarning,
           fmt::format("{}={} entries are soon overwritten; 2000 take half a "
                       "megabyte per rank",
                       ring.set_as, *entries),
           ring.set_as);
  }

  void check_dumping() {
    const bool has_pipe =
        setting("TORCH_NCCL_DEBUG_INFO_PIPE_FILE").value.has_value();
    const bool dumps = is_on("TORCH_FR_DUMP_ON_TIMEOUT");
    if (!dumps)
      tell("dump_off", has_pipe ? Severity::kWarning : Severity::kError,
           fmt::format("{}=0: a time-out leaves no dump{}",
                       setting("TORCH_FR_DUMP_ON_TIMEOUT").set_as,
                       has_pipe ? ", only the pipe does" : ""),
           "TORCH_FR_DUMP_ON_TIMEOUT");
    if (!is_on("TORCH_NCCL_ENABLE_MONITORING"))
      tell("useless_together", Severity::kError,
           fmt::format("TORCH_NCCL_ENABLE_MONITORING=0 ends the thread that "
                       "writes dumps{}",
                       dumps && has_pipe ? " and reads the pipe" : ""),
           "TORCH_NCCL_ENABLE_MONITORING");
    if (number("TORCH_NCCL_ASYNC_ERROR_HANDLING") == 0U)
      tell("useless_together", Severity::kWarning,
           "TORCH_NCCL_ASYNC_ERROR_HANDLING=0: the watchdog does nothing about "
           "a time-out, so a hung job waits for ever; leave it at 3",
           "TORCH_NCCL_ASYNC_ERROR_HANDLING");
    if (number("TORCH_NCCL_ASYNC_ERROR_HANDLING") == 1U)
      tell("useless_together", Severity::kWarning,
           "TORCH_NCCL_ASYNC_ERROR_HANDLING=1 can end a process before it has "
           "dumped; leave it at 3",
           "TORCH_NCCL_ASYNC_ERROR_HANDLING");
    const auto wait = number("TORCH_FR_WAIT_TIMEOUT_DUMP_MILSEC");
    if (wait && *wait < 1000)
      tell("useless_together", Severity::kWarning,
           fmt::format("{}={} ends processes before all ranks have dumped; "
                       "15000 is torch's value",
                       setting("TORCH_FR_WAIT_TIMEOUT_DUMP_MILSEC").set_as,
                       *wait),
           "TORCH_FR_WAIT_TIMEOUT_DUMP_MILSEC");
    if (!has_pipe)
      tell(
          "missing_variable", Severity::kNote,
          "TORCH_NCCL_DEBUG_INFO_PIPE_FILE is not set: a job that hangs can be "
          "dumped only by waiting for its time-out",
          "TORCH_NCCL_DEBUG_INFO_PIPE_FILE");
  }

  void check_contents() {
    if (!is_on("TORCH_INCLUDE_STACK_TRACE"))
      tell("useless_together", Severity::kWarning,
           "TORCH_INCLUDE_STACK_TRACE=0: dumps have no lines of code, so trace "
           "cannot say where",
           "TORCH_INCLUDE_STACK_TRACE");
    if (is_on("TORCH_INCLUDE_ONLY_ACTIVE"))
      tell("useless_together", Severity::kWarning,
           "TORCH_INCLUDE_ONLY_ACTIVE=1 leaves out what has finished, which is "
           "the evidence for mismatches and stragglers",
           "TORCH_INCLUDE_ONLY_ACTIVE");
    if (is_on("TORCH_FR_CPP_STACK"))
      tell("useless_together", Severity::kNote,
           "TORCH_FR_CPP_STACK=1 makes every operation and every dump slower; "
           "trace does not need it",
           "TORCH_FR_CPP_STACK");
    if (!is_on("TORCH_NCCL_ENABLE_TIMING"))
      tell("missing_variable", Severity::kNote,
           "TORCH_NCCL_ENABLE_TIMING=1 would tell a GPU that is stuck from its "
           "peers, for two CUDA events per operation",
           "TORCH_NCCL_ENABLE_TIMING");
    const Setting& file = setting("TORCH_FR_DUMP_TEMP_FILE");
    if (file.value && !file.value->empty() && is_digit(file.value->back()))
      tell("absurd_value", Severity::kWarning,
           fmt::format("{}={} ends with a digit, to which the rank is "
                       "appended; end it with _",
                       file.set_as, *file.value),
           file.set_as);
    if (file.value && !file.value->empty() && file.value->front() != '/' &&
        file.value->front() != '$' && file.value->front() != '~')
      tell("absurd_value", Severity::kWarning,
           fmt::format("{}={} is relative to wherever the program is at that "
                       "moment; give an absolute path",
                       file.set_as, *file.value),
           file.set_as);
    else if (file.value && file.value->starts_with('~'))
      tell("absurd_value", Severity::kError,
           fmt::format("{}={}: torch does not know what ~ is; write the folder "
                       "out",
                       file.set_as, *file.value),
           file.set_as);
  }

  const JobEnvironment& environment_;
  CheckedSettings checked_;
};

bool is_variable_name(std::string_view name) {
  return !name.empty() && !is_digit(name[0]) &&
         std::ranges::all_of(name, [](char c) {
           return is_letter(c) || is_digit(c) || c == '_';
         });
}

void add_assignment(std::string_view word, JobEnvironment& environment) {
  const std::size_t equals = word.find('=');
  if (equals != word.npos && is_variable_name(word.substr(0, equals)))
    environment.insert_or_assign(std::string(word.substr(0, equals)),
                                 std::string(word.substr(equals + 1)));
}

}  // namespace

std::span<const SettingTraits> setting_traits() {
  return kSettings;
}

JobEnvironment environment_of_process(std::string_view text) {
  JobEnvironment environment;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\0'), text.size());
    add_assignment(text.substr(0, end), environment);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return environment;
}

const Setting& CheckedSettings::find(std::string_view name) const {
  return *std::ranges::find(settings, name, [](const Setting& setting) {
    return setting.traits->name;
  });
}

CheckedSettings check_settings(const JobEnvironment& environment) {
  return Check(environment).run();
}

std::optional<std::string> dump_prefix(const CheckedSettings& checked,
                                       const JobEnvironment& environment) {
  const Setting& file = checked.find("TORCH_FR_DUMP_TEMP_FILE");
  const auto known = [&](std::string_view name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() || found->second.empty()
               ? std::nullopt
               : std::optional(found->second);
  };
  std::optional<std::string> prefix = file.value;
  if (!prefix)
    if (const auto cache = known("XDG_CACHE_HOME"))
      prefix = *cache + "/torch/comm_lib_trace_rank_";
  if (!prefix)
    if (const auto home = known("HOME"))
      prefix = *home + "/.cache/torch/comm_lib_trace_rank_";
  if (!prefix || prefix->find('$') != prefix->npos || prefix->empty() ||
      prefix->front() != '/')
    return std::nullopt;
  return prefix;
}

}  // namespace postflight
