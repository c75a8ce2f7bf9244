#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/finding.h"

namespace postflight {

enum class FrameKind : std::uint8_t {
  kPython,
  kNative,
  kMarker,  // for frames that are unknown: "<truncated>", "[gcc]"
};

// A place in a program. Texts are indices into Profile::texts.
struct ProfileFrame {
  FrameKind kind = FrameKind::kPython;
  std::uint32_t name = 0;
  std::uint32_t file = 0;  // or library
  std::uint32_t line = 0;  // 0: not known
  auto operator<=>(const ProfileFrame&) const = default;
};

// A stack is its innermost node; node 0 is the parent of every outermost frame.
struct StackNode {
  std::uint32_t parent = 0;
  std::uint32_t frame = 0;
  auto operator<=>(const StackNode&) const = default;
};

// A phase inside its parent; phase 0 is the time outside all phases.
struct ProfilePhase {
  std::uint32_t parent = 0;
  std::uint32_t name = 0;
  std::uint32_t frame_id = 0;  // what was compiled: "0/0"
  auto operator<=>(const ProfilePhase&) const = default;
};

struct ProfileThread {
  std::int32_t rank = -1;  // -1: none
  pid_t pid = 0;
  pid_t tid = 0;
  std::uint32_t process = 0;  // texts
  std::uint32_t name = 0;
  auto operator<=>(const ProfileThread&) const = default;
};

struct SampleFlags {
  bool waiting = false;     // the thread was not running
  bool torn = false;        // it changed; only the outer frames are known
  bool cut = false;         // truncated: only the inner frames are known
  bool unreadable = false;  // no frames are known
  bool outside = false;     // from outside, as the agent had no chance to
  // Where neither is set, it is not known.
  bool gil = false;  // the thread holds the GIL
  bool no_gil = false;
  bool interpreter = false;  // it runs the interpreter's own code
  bool library = false;      // it runs other native code

  bool operator==(const SampleFlags&) const = default;
};

struct ProfileSample {
  std::uint64_t time_ns = 0;    // since the profile's start
  std::uint64_t weight_ns = 0;  // the time it stands for
  std::uint64_t system_ns = 0;  // part of it, CPU time in the kernel
  std::uint32_t thread = 0;
  std::uint32_t stack = 0;
  std::uint32_t phase = 0;
  SampleFlags flags = {};

  bool operator==(const ProfileSample&) const = default;
};

// What a process has used, by the kernel's own count, while it was profiled.
struct ProfileProcess {
  std::int32_t rank = -1;
  pid_t pid = 0;
  std::uint32_t command = 0;  // texts
  std::uint64_t user_ns = 0;
  std::uint64_t system_ns = 0;
  std::uint64_t sampled_ns = 0;  // the sum of its samples' weights
  std::uint32_t why = 0;         // texts: why samples are missing, or empty

  bool operator==(const ProfileProcess&) const = default;
};

// What was sampled, from one process tree or several. Every index in it is
// valid.
struct Profile {
  std::vector<std::string> texts = {""};
  std::vector<ProfileFrame> frames = {};
  std::vector<StackNode> stacks = {{}};
  std::vector<ProfilePhase> phases = {{}};
  std::vector<ProfileThread> threads = {};
  std::vector<ProfileSample> samples = {};
  std::vector<ProfileProcess> processes = {};
  // "mode", "rate", "engine", "command", ...; and "lost", "torn", "cut", ...
  std::map<std::string, std::string, std::less<>> notes = {};
  std::map<std::string, std::uint64_t, std::less<>> counters = {};
  std::vector<Finding> findings = {};

  // "load/import_module", or "no phase".
  std::string phase_name(std::uint32_t phase) const;
  // The frame id of the phase, or of the nearest enclosing one that has one.
  std::string phase_frame_id(std::uint32_t phase) const;
};

// Fills the tables of a profile, each entry once.
class ProfileBuilder {
 public:
  std::uint32_t text(std::string_view text);
  std::uint32_t frame(const ProfileFrame& frame);
  std::uint32_t stack(std::uint32_t parent, std::uint32_t frame);
  std::uint32_t phase(const ProfilePhase& phase);
  std::uint32_t thread(const ProfileThread& thread);

  Profile& profile() { return profile_; }
  const Profile& profile() const { return profile_; }

 private:
  struct Hash {
    std::size_t operator()(const ProfileFrame& frame) const;
    std::size_t operator()(const StackNode& node) const;
    using is_transparent = void;  // NOLINT: the standard's name
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  Profile profile_;
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> texts_ =
      {{"", 0}};
  std::unordered_map<ProfileFrame, std::uint32_t, Hash> frames_;
  std::unordered_map<StackNode, std::uint32_t, Hash> stacks_;
  std::map<ProfilePhase, std::uint32_t> phases_;
  std::map<ProfileThread, std::uint32_t> threads_;
};

}  // namespace postflight
