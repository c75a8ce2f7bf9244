// RE2 cannot be part of a shared library: Debian's archive accesses its
// thread-local variables as only a program can. So the library takes globs,
// and where the program takes a regular expression, this error says so. It
// replaces base/pattern.cc.

#include "base/pattern.h"

namespace postflight {

struct Pattern::Compiled {};

Result<Pattern> Pattern::compile(std::string_view) {
  return fail(ErrorKind::kUnsupported,
              "the library takes no regular expressions; give a glob, or use "
              "the program");
}

Pattern::Pattern(std::unique_ptr<Compiled> compiled)
    : compiled_(std::move(compiled)) {}
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

int Pattern::groups() const {
  return 0;
}

bool Pattern::found_in(std::string_view) const {
  return false;
}

bool Pattern::matches(std::string_view) const {
  return false;
}

bool Pattern::matches_start_of(std::string_view) const {
  return false;
}

std::optional<std::string_view> Pattern::first_group(std::string_view) const {
  return std::nullopt;
}

}  // namespace postflight
