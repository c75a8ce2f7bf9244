#pragma once

// Taking and reading profiles: what the command, the C interface and Python
// call alike.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/atomic_file.h"
#include "base/context.h"
#include "base/error.h"
#include "base/temporary_folder.h"
#include "profile/engine/agent_arena.h"
#include "profile/engine/engine.h"
#include "profile/engine/launch.h"
#include "profile/log/log.h"
#include "profile/log/profile.h"
#include "profile/phase/filter.h"

namespace postflight {

enum class EngineChoice : std::uint8_t {
  kAuto,      // from inside where that is possible
  kExternal,  // always from outside
};

// What to profile, and how.
struct ProfileRequest {
  // Exactly one of them: a program to launch, or a process to attach to.
  std::vector<std::string> command = {};
  std::optional<pid_t> pid = {};

  std::chrono::nanoseconds interval{10'101'010};  // 99 Hz
  std::chrono::nanoseconds duration{0};           // 0: until the program ends
  ProfileMode mode = ProfileMode::kCpu;
  EngineChoice engine = EngineChoice::kAuto;
  std::size_t most_frames = 500;  // per stack
  bool children = true;           // processes that it starts, too
  bool native = false;            // native frames, too
  PhaseFilter phases = {};
  // If empty, profile.pflog, or profile-rank3.pflog where the environment has a
  // rank. If the file exists, the first of profile-2.pflog, ... that is free is
  // written instead, unless `existing` says to replace it.
  std::filesystem::path output = {};
  Existing existing = Existing::kRefuse;
};

// How taking a profile ended.
struct ProfileOutcome {
  std::filesystem::path file = {};
  std::uint64_t samples = 0;
  // Why Python frames of some process could not be read; empty if they could.
  std::string trouble = {};
  // How the launched program failed: "exit status 3", "signal 9 (Killed)";
  // empty if it did not.
  std::string failure = {};
  // Its exit status, or the signal that ended it.
  int status = 0;
  int signal = 0;
  bool interrupted = false;
};

// A profile that is being taken.
class ProfileRun {
 private:
  struct Private {};

 public:
  // Checks that the program can be run or the process read, creates the file,
  // and launches the program.
  static Result<std::unique_ptr<ProfileRun>> start(ProfileRequest request,
                                                   const Context& context);
  // For start().
  ProfileRun(Private, ProfileRequest request, const Context& context);
  ProfileRun(const ProfileRun&) = delete;
  ProfileRun& operator=(const ProfileRun&) = delete;
  // Waits for the launched program.
  ~ProfileRun() = default;

  const std::filesystem::path& file() const { return file_; }
  // The file asked for, which is another one if it exists.
  const std::filesystem::path& asked_for() const { return asked_for_; }

  // Samples until the program ends, the duration is over or the run is
  // interrupted, and then waits for a launched program. `before_sample` may
  // block to pause the profile.
  Result<ProfileOutcome> finish(const std::function<void()>& before_sample =
                                    [] {});

  // A user's signal; safe from any thread. Sampling of an attached process
  // ends. A launched program gets the signal, unless it came `from_terminal`
  // and so to the program as well.
  void interrupt(int signal, bool from_terminal);

 private:
  Result<> create_log();
  std::string_view why_external() const;
  void write_notes();
  Result<> launch();
  Result<> prepare_agent(std::vector<std::string>& environment);

  const ProfileRequest request_;
  const Context context_;
  SamplingOptions sampling_;
  std::filesystem::path file_;
  std::filesystem::path asked_for_;
  std::optional<ProfileLogWriter> log_;
  const FileSizeGuard file_size_guard_;
  std::optional<TemporaryFolder> folder_;  // of phases and the agent
  std::optional<AgentArena> arena_;
  std::optional<Launch> launch_;
  std::optional<SignalForwarding> forwarding_;
  std::atomic<int> interrupts_ = 0;
};

// Several profiles as one, such as those of the ranks of a job.
struct ReadProfiles {
  Profile profile = {};
  std::vector<std::string> files = {};  // that could be read
  std::vector<Error> problems = {};     // one for each that could not
};

// `after_file` is called after each of them.
ReadProfiles read_profiles(
    std::span<const std::string> files, const Context& context,
    const std::function<void()>& after_file = [] {});

// Which samples to show, as a user writes it; all of them if nothing is given.
struct ProfileSelection {
  std::string ranks = {};                 // "0-3,8"
  std::vector<std::string> threads = {};  // numbers, or globs of names
  std::string phase = {};     // regular expressions, found anywhere: in the
  std::string function = {};  // phase, and in a function of the stack
  bool gil = false;           // while the thread held the GIL
};

// Removes the other samples. Fails if the selection is not valid or none is
// left.
Result<> select_samples(const ProfileSelection& selection, Profile& profile);

}  // namespace postflight
