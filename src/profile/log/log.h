#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/limits.h"
#include "profile/log/profile.h"

namespace postflight {

// A profile on disk, written as it grows, so that a crash loses only what was
// not flushed.
//
//   log    "PFPROF\x02\n", then blocks; with 1 instead of 2, an older one,
//          which differs in that samples have no CPU time in the kernel
//   block  u32 size, u32 checksum (FNV-1a), then that many bytes of items
//   item   u8 kind, then numbers as LEB128
//
// Texts, frames, stacks, phases and threads are numbered in the order in which
// they appear, as in Profile, and appear before they are used. A log that ends
// inside a block is truncated; everything before that block is valid.
class ProfileLogWriter {
 public:
  // Replaces an existing file; with `exclusive`, fails instead.
  static Result<ProfileLogWriter> create(const std::filesystem::path& path,
                                         bool exclusive);

  void note(std::string_view key, std::string_view value);
  // Counters are absolute: the last value counts.
  void counter(std::string_view key, std::uint64_t value);
  // Writes what was added to the tables since the last call. The profile must
  // be the same each time; its samples, notes and counters are ignored.
  void tables(const Profile& profile);
  // What it refers to must be in the tables already. Times must not decrease.
  void sample(const ProfileSample& sample);
  void process(const ProfileProcess& process);
  // Writes everything to the file; call it regularly.
  Result<> flush();

 private:
  explicit ProfileLogWriter(Descriptor descriptor, std::string name);
  void number(std::uint64_t value);
  void text(std::string_view text);

  Descriptor descriptor_;
  std::string name_;
  std::string block_;
  std::uint64_t last_time_ = 0;
  std::size_t texts_ = 1;
  std::size_t frames_ = 0;
  std::size_t stacks_ = 1;
  std::size_t phases_ = 1;
  std::size_t threads_ = 0;
};

// Adds a log to a profile. A damaged end is a finding, in which `where` names
// the log; a file that is not a log is an error.
Result<> read_profile_log(Bytes log, std::string_view where,
                          const Limits& limits, ProfileBuilder& into);

}  // namespace postflight
