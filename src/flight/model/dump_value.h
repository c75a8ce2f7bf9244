#pragma once

#include "base/error.h"
#include "flight/model/dump.h"
#include "pickle/value.h"

namespace postflight {

// Takes a dump out of the values that a pickle or JSON reader made of it.
// Fails if `root` is no dump of a flight recorder.
Result<Dump> dump_from_value(const Value& root);

// Whether these are the values of a dump: a dictionary with entries or groups,
// or the bare list of entries that recorders before version 1 wrote.
bool looks_like_dump(const Value& root);

}  // namespace postflight
