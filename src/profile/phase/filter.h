#pragma once

#include <optional>
#include <string_view>

#include "base/pattern.h"

namespace postflight {

// Which phases to profile, by their names and by the ids of the frames that
// torch.compile compiles in them. What is absent keeps everything.
struct PhaseFilter {
  std::optional<Pattern> phase = {};  // found anywhere in the full name
  std::optional<Pattern> frame = {};  // matches the beginning of the frame id
  bool whole_frame = false;           // ... or all of it
  std::optional<Pattern> frame_exclude = {};  // matches its beginning

  bool keeps_all() const { return !phase && !frame && !frame_exclude; }
  bool keeps(std::string_view name, std::string_view frame_id) const;
};

}  // namespace postflight
