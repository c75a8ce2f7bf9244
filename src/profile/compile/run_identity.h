#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/log.h"

namespace postflight {

// Identifies a run: "2026-11-15-17:02:33_4711_node3_rank7".
std::string run_identifier(std::time_t now, pid_t pid, std::string_view host,
                           std::int32_t rank);

// The URL of an absolute path: "file:///tmp/a%20b.pflog".
std::string file_url(std::string_view path);

// Runs the command with the URL as its last argument and returns the first line
// that it prints, such as where it uploaded the file. If the command fails,
// prints nothing or takes longer than `seconds`, a warning is logged and the
// URL is returned unchanged.
std::string answered_url(std::string_view command, const std::string& url,
                         int seconds, Log& log);

}  // namespace postflight
