#pragma once

#include <string>
#include <string_view>

namespace postflight {

// Appends `text` as a JSON string, quotes included. Its value is the text
// exactly; what a terminal would act on is written \u009b, and a lone surrogate
// (three bytes, as Python's surrogatepass) \ud800.
//
// Returns false if some bytes were not UTF-8. The value then is the text with
// those as \x9b and every backslash doubled; the caller puts "escaped": true
// beside it.
[[nodiscard]] bool append_json_string(std::string_view text, std::string& out);

}  // namespace postflight
