#include "base/interruption.h"

#include <utility>

namespace postflight {
namespace {

struct OfThread {
  Interruption* current = nullptr;
  bool owner = false;  // it has made the call
};

OfThread& of_this_thread() {
  thread_local OfThread mine;
  return mine;
}

}  // namespace

Interruption::Interruption(std::function<bool()> asked)
    : asked_(std::move(asked)),
      outer_(of_this_thread().current),
      next_(std::chrono::steady_clock::now() + kPause) {
  of_this_thread() = {this, true};
}

Interruption::~Interruption() {
  // A call inside another one, as from a function that is asked or that takes
  // messages, is made by the same thread.
  of_this_thread() = {outer_, outer_ != nullptr};
}

Interruption* Interruption::current() {
  return of_this_thread().current;
}

bool Interruption::ask() {
  if (happened())
    return true;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_)
    return false;
  if (asked_())
    happened_ = true;
  next_ = std::chrono::steady_clock::now() + kPause;
  return happened();
}

InterruptionScope::InterruptionScope(Interruption* of)
    : before_(of_this_thread().current), was_owner_(of_this_thread().owner) {
  of_this_thread() = {of, false};
}

InterruptionScope::~InterruptionScope() {
  of_this_thread() = {before_, was_owner_};
}

bool interrupted() {
  const OfThread& mine = of_this_thread();
  if (mine.current == nullptr)
    return false;
  return mine.owner ? mine.current->ask() : mine.current->happened();
}

Result<> check_interruption() {
  if (interrupted()) [[unlikely]]
    return fail(ErrorKind::kIo, "interrupted");
  return {};
}

}  // namespace postflight
