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

// A profile on disk, written as it grows so that a crash costs at most what
// was not flushed.
//
//   log    "PFPROF\x01\n", then blocks
//   block  u32 size, u32 checksum (FNV-1a), then that many bytes of items
//   item   u8 kind, then numbers as LEB128
//
// Texts, frames, stacks, phases and threads are numbered in the order they
// appear, as Profile numbers them, and are used only after they appeared. A
// log that ends inside a block was cut; all before that block holds.
class ProfileLogWriter {
 public:
  // Replaces what is there. With `exclusive`, refuses to.
  static Result<ProfileLogWriter> create(const std::filesystem::path& path,
                                         bool exclusive);

  void note(std::string_view key, std::string_view value);
  // Counters are absolute: the last value holds.
  void counter(std::string_view key, std::uint64_t value);
  // Writes what the tables have more than at the last call. The caller gives
  // the same tables each time; their samples, notes and counters are ignored.
  void tables(const Profile& profile);
  // What it points at has to be in the tables given before. Times must not
  // run backwards.
  void sample(const ProfileSample& sample);
  // Hands everything to the system; kept small by the caller's clock.
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

// Adds what a log holds to a profile. `where` names the log in findings; a
// damaged end is one of those, what is no log at all is an error.
Result<> read_profile_log(Bytes log, std::string_view where,
                          const Limits& limits, ProfileBuilder& into);

}  // namespace postflight
