#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "profile/log/profile.h"
#include "profile/native/unwinder.h"
#include "profile/python/code_reader.h"
#include "profile/python/stack.h"

namespace postflight {

// Turns the raw stacks of one thread into stacks of a profile. Frames that were
// on the thread's previous stack, too, are not looked up again.
class StackNamer {
 public:
  // Both must outlive it.
  StackNamer(CodeReader& codes, ProfileBuilder& profile)
      : codes_(codes), profile_(profile) {}

  // The profile's number for the stack, on top of the stack `below`.
  std::uint32_t name(const RawStack& stack, std::uint32_t below);

 private:
  struct Named {
    RawFrame raw;
    std::uint32_t stack;
  };

  CodeReader& codes_;
  ProfileBuilder& profile_;
  std::uint32_t below_ = 0;
  std::uint64_t changes_ = 0;  // of codes_, when last_ was made
  std::vector<Named> last_;    // the outermost first
};

// The profile's number for a frame of Python.
std::uint32_t python_frame(const RawFrame& raw, CodeReader& codes,
                           ProfileBuilder& profile);

// A frame that is not a function: "[gcc]", "<torn>".
std::uint32_t marker(ProfileBuilder& profile, std::string_view name);

// Merges Python and native frames into one stack. Python code runs in the
// interpreter's loop, so each native frame of that loop is replaced by the
// Python frames that it ran, up to the one that C called. `native` comes from
// unwind(); if it ends early, the remaining Python frames are the outermost.
// `codes` may be null if there are no Python frames.
std::uint32_t merged_stack(const RawStack& python,
                           std::span<const std::uint64_t> native,
                           NativeUnwinder& unwinder, CodeReader* codes,
                           ProfileBuilder& profile);

}  // namespace postflight
