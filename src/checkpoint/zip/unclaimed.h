#pragma once

#include <vector>

#include "base/bytes.h"
#include "checkpoint/zip/directory.h"
#include "checkpoint/zip/extent.h"

namespace postflight {

// The bytes between the entries of an archive that belong to none, from the
// front of `archive`: readers that go from header to header see entries there
// that the directory does not have.
std::vector<Extent> unclaimed_bytes(Bytes archive,
                                    const ZipDirectory& directory);

// Extra fields and comments, of entries and of the archive, that are not what
// zip writers put there: readers skip them, and anything may be in them.
std::vector<Extent> hidden_fields(Bytes archive, const ZipDirectory& directory);

}  // namespace postflight
