#pragma once

#include <cstdint>
#include <vector>

#include "flight/classic/judge.h"

namespace postflight {

// Who of those that are missing somewhere is at fault. A rank that waits in an
// operation of its own is held up by whoever is missing there, and so on; at
// the end of that chain is a rank that waits for nobody. If the chain is a
// circle, two operations were started in different orders, and the few are
// accused, not the many.
class ClassicBlame {
 public:
  ClassicBlame(const Matching& matching, const ClassicJudge& judge);

  // Of those who have not joined what `joined` others did.
  std::vector<Rank> accused(const std::vector<Rank>& missing,
                            std::size_t joined) const;

 private:
  enum class Standing : std::uint8_t {
    kFree,      // waits for nobody, or differs in what it waits in
    kHeldUp,    // waits for others
    kInCircle,  // waits for ranks that wait for it
  };

  const Job& job_;
  std::vector<Standing> standings_;  // by rank of the job
};

}  // namespace postflight
