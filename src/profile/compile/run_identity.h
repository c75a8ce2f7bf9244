#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/log.h"

namespace postflight {

// "2026-11-15-17:02:33_4711_node3_rank7": what tells one run from all others.
std::string run_identifier(std::time_t now, pid_t pid, std::string_view host,
                           std::int32_t rank);

// "file:///tmp/a%20b.pflog" of an absolute path.
std::string file_url(std::string_view path);

// What the command answers for the URL, which is its last argument: where it
// was uploaded to, or something shorter. The first line counts. If the command
// fails, says nothing or takes longer than `seconds`, a warning is logged and
// the URL itself is the answer.
std::string answered_url(std::string_view command, const std::string& url,
                         int seconds, Log& log);

}  // namespace postflight
