#pragma once

#include <memory>
#include <optional>

#include <postflight/postflight.h>

#include "api/trace.h"
#include "library/context.h"

namespace postflight {

// The dumps of a job, and what is known about it if that was asked for.
struct SharedJob {
  std::shared_ptr<SharedContext> context;
  std::optional<Job> dumps = {};
  std::optional<Investigation> found = {};

  const Job& job() const { return found ? found->job() : *dumps; }
};

}  // namespace postflight

struct postflight_job {
  std::shared_ptr<const postflight::SharedJob> shared;
};
