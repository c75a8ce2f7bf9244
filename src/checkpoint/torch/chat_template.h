#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pickle/audit/safety.h"

namespace postflight {

// By what a chat template, which runtimes render by Jinja, reaches beyond the
// messages that it is given: "'__'", "the filter attr". Empty if by nothing.
std::optional<std::string> reach_of_template(std::string_view text);

// The same as a reason.
Reason template_reaches(std::string_view reach);

}  // namespace postflight
