#pragma once

#include <memory>

#include <postflight/postflight.h>

#include "base/context.h"
#include "base/log.h"

namespace postflight {

// A context as the handles that were opened with it share it.
struct SharedContext {
  SharedContext();
  SharedContext(const SharedContext&) = delete;
  SharedContext& operator=(const SharedContext&) = delete;

  Context context;
  postflight_log_function log_function = nullptr;
  void* log_user = nullptr;
  Log log;
};

// That of a handle, or one with the defaults for NULL.
std::shared_ptr<SharedContext> shared_context(postflight_context* context);

}  // namespace postflight

struct postflight_context {
  std::shared_ptr<postflight::SharedContext> shared;
};
