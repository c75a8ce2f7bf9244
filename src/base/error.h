#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <tl/expected.hpp>

namespace postflight {

enum class ErrorKind : std::uint8_t {
  kIo,           // the file could not be opened, read or written
  kCorrupt,      // the bytes break the rules of their own format
  kUnsupported,  // well formed, but a version or feature we do not read
  kRefused,      // well formed, but reading it would exceed `Limits`
  kUsage,        // invalid arguments
};

// Why an operation failed. One pointer wide, so that Result<T> stays small and
// the success path pays nothing; the text is on the heap.
class [[nodiscard]] Error {
 public:
  Error(ErrorKind kind, std::string message);
  Error(Error&&) noexcept;
  Error& operator=(Error&&) noexcept;
  ~Error();

  ErrorKind kind() const;
  // A sentence without a full stop. It may quote bytes of a file, so escape it
  // before printing.
  std::string_view message() const;

  // Returns this error with "context: " put before its message.
  Error in(std::string_view context) &&;

 private:
  struct Detail;
  std::unique_ptr<Detail> detail_;
};

// A value or the Error that prevented it. Ignoring one is a compiler warning.
template <class T = void>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;

  // This result; its error, if it is one, says `context` first:
  // TRY(read(path).in(path.string())).
  Result in(std::string_view context) && {
    if (!this->has_value()) [[unlikely]]
      this->error() = std::move(this->error()).in(context);
    return std::move(*this);
  }
};

template <class... Args>
[[gnu::cold]] tl::unexpected<Error> fail(ErrorKind kind,
                                         fmt::format_string<Args...> format,
                                         Args&&... args) {
  return tl::unexpected<Error>(
      Error(kind, fmt::format(format, std::forward<Args>(args)...)));
}

// A kIo error for `action` ("cannot open x") from the current errno.
[[gnu::cold]] tl::unexpected<Error> fail_errno(std::string_view action);

namespace detail {
template <class T>
T unwrap(Result<T>&& result) {
  return *std::move(result);
}
inline void unwrap(Result<>&&) {}
}  // namespace detail

// Evaluates to the value of a Result, or returns its error from the caller.
#define TRY(expression)                                  \
  __extension__({                                        \
    auto try_result = (expression);                      \
    if (!try_result) [[unlikely]]                        \
      return ::tl::unexpected<::postflight::Error>(      \
          std::move(try_result).error());                \
    ::postflight::detail::unwrap(std::move(try_result)); \
  })

}  // namespace postflight
