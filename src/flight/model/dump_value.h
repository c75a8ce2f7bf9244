#pragma once

#include "base/error.h"
#include "flight/model/dump.h"
#include "pickle/value.h"

namespace postflight {

// Converts the values that a pickle or JSON reader returned to a dump. Fails if
// `root` is not a flight-recorder dump.
Result<Dump> dump_from_value(const Value& root, MemberLists& lists);

// Whether `root` is a dump: a dictionary with entries or groups, or the bare
// list of entries that recorders before version 1 wrote.
bool looks_like_dump(const Value& root);

}  // namespace postflight
