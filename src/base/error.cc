#include "base/error.h"

#include <cerrno>
#include <system_error>

namespace postflight {

struct Error::Detail {
  ErrorKind kind;
  std::string message;
};

Error::Error(ErrorKind kind, std::string message)
    : detail_(new Detail{kind, std::move(message)}) {}
Error::Error(Error&&) noexcept = default;
Error& Error::operator=(Error&&) noexcept = default;
Error::~Error() = default;

ErrorKind Error::kind() const {
  return detail_->kind;
}
std::string_view Error::message() const {
  return detail_->message;
}

Error Error::in(std::string_view context) && {
  detail_->message = fmt::format("{}: {}", context, detail_->message);
  return std::move(*this);
}

tl::unexpected<Error> fail_errno(std::string_view action) {
  return fail(ErrorKind::kIo, "{}: {}", action,
              std::generic_category().message(errno));
}

}  // namespace postflight
