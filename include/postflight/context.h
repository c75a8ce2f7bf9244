// Errors, texts and the context, for C++17 and later. Everything in these
// headers is inline over postflight.h, so that no C++ type crosses the border
// of the library.

#ifndef POSTFLIGHT_CONTEXT_H
#define POSTFLIGHT_CONTEXT_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <postflight/postflight.h>

namespace postflight {

// What failed: a sentence, and its kind. It may quote bytes of a file.
class Error : public std::runtime_error {
 public:
  Error(postflight_status status, const std::string& message)
      : std::runtime_error(message), status_(status) {}
  postflight_status status() const { return status_; }

 private:
  postflight_status status_;
};

namespace detail {

// Handles are freed by the function of their type.
template <auto Free>
struct Freer {
  template <class Handle>
  void operator()(Handle* handle) const {
    Free(handle);
  }
};
template <class Handle, auto Free>
using Owned = std::unique_ptr<Handle, Freer<Free>>;

// Calls a function of the interface; throws what it reports.
template <class Function, class... Arguments>
void call(Function function, Arguments... arguments) {
  postflight_error* error = nullptr;
  const postflight_status status = function(arguments..., &error);
  if (status == POSTFLIGHT_OK)
    return;
  const Owned<postflight_error, postflight_error_free> owned(error);
  throw Error(status, postflight_error_message(error));
}

// The same for a function whose last argument but one is the result.
template <class Handle, auto Free, class Function, class... Arguments>
Owned<Handle, Free> make(Function function, Arguments... arguments) {
  Handle* handle = nullptr;
  call(function, arguments..., &handle);
  return Owned<Handle, Free>(handle);
}

template <class Function, class... Arguments>
std::string text(Function function, Arguments... arguments) {
  const auto found =
      make<postflight_text, postflight_text_free>(function, arguments...);
  return {postflight_text_data(found.get()), postflight_text_size(found.get())};
}

inline std::vector<const char*> pointers(const std::vector<std::string>& from) {
  std::vector<const char*> to;
  to.reserve(from.size());
  for (const std::string& one : from)
    to.push_back(one.c_str());
  return to;
}

inline std::string_view view(const postflight_string& string) {
  return {string.data, string.size};
}

inline const char* text_or_null(const std::string& text) {
  return text.empty() ? nullptr : text.c_str();
}

}  // namespace detail

// What calls share: threads, limits and a log. What was opened with a context
// may outlive it, but not what its log function needs.
class Context {
 public:
  using LogFunction =
      std::function<void(postflight_log_level level, std::string_view channel,
                         std::string_view message)>;

  Context()
      : handle_(detail::make<postflight_context, postflight_context_free>(
            postflight_context_new)) {}

  // 0: as many as there are processors.
  void set_threads(std::size_t threads) {
    postflight_context_set_threads(handle_.get(), threads);
  }
  void set_limit(const std::string& name, std::uint64_t value) {
    detail::call(postflight_context_set_limit, handle_.get(), name.c_str(),
                 value);
  }
  // The function must not throw.
  void set_log(LogFunction function) {
    log_ = std::make_unique<LogFunction>(std::move(function));
    postflight_context_set_log(
        handle_.get(),
        [](void* user, postflight_log_level level, const char* channel,
           const char* message) {
          (*static_cast<LogFunction*>(user))(level, channel, message);
        },
        log_.get());
  }
  // Asked now and then during long calls, on the thread that makes them; once
  // it returns true, they throw an Error of POSTFLIGHT_INTERRUPTED. It must not
  // throw.
  void set_interrupt(std::function<bool()> function) {
    interrupt_ = std::make_unique<std::function<bool()>>(std::move(function));
    postflight_context_set_interrupt(
        handle_.get(),
        [](void* user) {
          return (*static_cast<std::function<bool()>*>(user))() ? 1 : 0;
        },
        interrupt_.get());
  }
  // Returns the level before.
  postflight_log_level set_log_level(const std::string& channel,
                                     postflight_log_level level) {
    postflight_log_level before = POSTFLIGHT_INFO;
    detail::call(postflight_context_set_log_level, handle_.get(),
                 channel.c_str(), level, &before);
    return before;
  }

  postflight_context* handle() const { return handle_.get(); }

 private:
  std::unique_ptr<LogFunction> log_;
  std::unique_ptr<std::function<bool()>> interrupt_;
  detail::Owned<postflight_context, postflight_context_free> handle_;
};

// Sets the level of one channel until the end of the scope.
class ScopedLogLevel {
 public:
  ScopedLogLevel(Context& context, std::string channel,
                 postflight_log_level level)
      : context_(context),
        channel_(std::move(channel)),
        before_(context.set_log_level(channel_, level)) {}
  ScopedLogLevel(const ScopedLogLevel&) = delete;
  ScopedLogLevel& operator=(const ScopedLogLevel&) = delete;
  ~ScopedLogLevel() {
    postflight_context_set_log_level(context_.handle(), channel_.c_str(),
                                     before_, nullptr, nullptr);
  }

 private:
  Context& context_;
  const std::string channel_;
  const postflight_log_level before_;
};

}  // namespace postflight

#endif
