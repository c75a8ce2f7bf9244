#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/limits.h"
#include "checkpoint/model/contents.h"

namespace postflight {

// The files that torch.save has written over time, and bare pickles. Each
// function adds a file that is already among the checkpoint's; is_...() looks
// at the file's bytes.

// torch.save since 1.6, TorchScript, torch.package and exported programs: the
// records in the archive decide which.
bool is_torch_zip(Bytes file);
Result<Format> add_torch_zip(std::uint32_t file, const SourceContext& context);

// torch.save from 0.1.10 to 1.5.
bool is_legacy_stream(Bytes file, const Limits& limits);
Result<> add_legacy_stream(std::uint32_t file, const SourceContext& context);

// torch.save before 0.1.10. Also true if the header's checksum is wrong.
bool is_tar(Bytes file);
Result<> add_tar(std::uint32_t file, const SourceContext& context);

Result<> add_bare_pickle(std::uint32_t file, const SourceContext& context);

}  // namespace postflight
