#pragma once

#include "base/error.h"
#include "base/file.h"
#include "base/limits.h"

namespace postflight {

// For a file that is mapped without a TruncationGuard: copies in what describes
// its tensors, before anything looks at it, see MappedFile::copy_in(). Of an
// archive that is all but the records of tensors, of a safetensors file its
// header; of others the front, as where their pickles end shows only when they
// are read.
Result<> copy_descriptions(const MappedFile& file, const Limits& limits);

}  // namespace postflight
