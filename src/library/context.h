#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include <sys/types.h>

#include <postflight/postflight.h>

#include "base/context.h"
#include "base/error.h"
#include "base/interruption.h"
#include "base/log.h"
#include "library/boundary.h"

namespace postflight {

// A context as the handles that were opened with it share it.
struct SharedContext {
  SharedContext();
  SharedContext(const SharedContext&) = delete;
  SharedContext& operator=(const SharedContext&) = delete;

  // Whether the caller's function wants the call to end.
  bool asked_to_end();

  Context context;
  postflight_interrupt_function interrupt_function = nullptr;
  void* interrupt_user = nullptr;
  postflight_log_function log_function = nullptr;
  void* log_user = nullptr;
  Log log;

 private:
  std::atomic<pid_t> asking_ = 0;
};

// Does what takes long, unless the caller's function ends it.
template <class Body>
Result<> interruptible(SharedContext& context, Body&& body) {
  if (context.interrupt_function == nullptr)
    return std::forward<Body>(body)();
  const Interruption call([&context] { return context.asked_to_end(); });
  Result<> done = std::forward<Body>(body)();
  if (call.happened())
    throw Interrupted();
  return done;
}

// That of a handle, or one with the defaults for NULL.
std::shared_ptr<SharedContext> shared_context(postflight_context* context);

}  // namespace postflight

struct postflight_context {
  std::shared_ptr<postflight::SharedContext> shared;
};
