#pragma once

#include <optional>

#include "base/bytes.h"
#include "flight/model/dump.h"

namespace postflight {

// Reads a dump straight into columns if it is written as torch's own pickler
// writes it, from its first byte to its last. Nothing for anything else, be it
// another pickler's, an unknown key, damage or malice: dump_from_value() then
// says what it is. Where both can read a dump they give the same.
std::optional<Dump> read_recorder_dump(Bytes bytes);

}  // namespace postflight
