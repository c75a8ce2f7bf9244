#include "profile/phase/filter.h"

namespace postflight {

bool PhaseFilter::keeps(std::string_view name,
                        std::string_view frame_id) const {
  if (phase && !phase->found_in(name))
    return false;
  if (frame_exclude && frame_exclude->matches_start_of(frame_id))
    return false;
  if (!frame)
    return true;
  return whole_frame ? frame->matches(frame_id)
                     : frame->matches_start_of(frame_id);
}

}  // namespace postflight
