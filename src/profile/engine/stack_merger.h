#pragma once

#include <cstdint>
#include <span>

#include "profile/log/profile.h"
#include "profile/native/unwinder.h"
#include "profile/python/code_reader.h"
#include "profile/python/stack.h"

namespace postflight {

// One stack out of Python's frames and the machine's. Python code runs in the
// interpreter's loop: each native frame of that loop stands for the Python
// frames that it ran, up to the one that C called. `native` is as unwind() gave
// it; where it ends early, the rest of the Python frames lies outside of it.
std::uint32_t merged_stack(const RawStack& python,
                           std::span<const std::uint64_t> native,
                           NativeUnwinder& unwinder, CodeReader& codes,
                           ProfileBuilder& profile);

}  // namespace postflight
