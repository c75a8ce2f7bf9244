#pragma once

#include <optional>

#include "base/bytes.h"
#include "flight/model/dump.h"

namespace postflight {

// The fast path: reads a dump straight into columns if every byte of it is as
// torch's own pickler writes it. Returns nothing otherwise (another pickler, an
// unknown key, damage, malice); dump_from_value() is then to be used. Where
// both succeed, the results are equal.
std::optional<Dump> read_recorder_dump(Bytes bytes, MemberLists& lists);

}  // namespace postflight
