#pragma once

#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "pickle/audit/safety.h"

namespace postflight {

// Whether an entry of that name is the code of a TorchScript archive: source in
// TorchScript, or the bytecode of its mobile format.
bool is_script_code(std::string_view name);

// What such code would do beyond computing; empty if it only computes.
std::optional<Reason> harm_of_script(Bytes code);

}  // namespace postflight
