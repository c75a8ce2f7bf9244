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

// Turns the raw stacks of one thread into stacks of a profile. Frames that
// were on the thread's last stack, too, are not looked up again.
class StackNamer {
 public:
  // Both have to outlive it.
  StackNamer(CodeReader& codes, ProfileBuilder& profile)
      : codes_(codes), profile_(profile) {}

  // The profile's number for the stack, which grows on `below`.
  std::uint32_t name(const RawStack& stack, std::uint32_t below);

 private:
  struct Named {
    RawFrame raw;
    std::uint32_t stack;
  };

  CodeReader& codes_;
  ProfileBuilder& profile_;
  std::uint32_t below_ = 0;
  std::vector<Named> last_;  // the outermost first
};

// The profile's number for a frame of Python.
std::uint32_t python_frame(const RawFrame& raw, CodeReader& codes,
                           ProfileBuilder& profile);

// A frame that stands for something else than a function.
std::uint32_t marker(ProfileBuilder& profile, std::string_view name);

// One stack out of Python's frames and the machine's. Python code runs in the
// interpreter's loop: each native frame of that loop stands for the Python
// frames that it ran, up to the one that C called. `native` is as unwind() gave
// it; where it ends early, the rest of the Python frames lies outside of it.
std::uint32_t merged_stack(const RawStack& python,
                           std::span<const std::uint64_t> native,
                           NativeUnwinder& unwinder, CodeReader& codes,
                           ProfileBuilder& profile);

}  // namespace postflight
