// fmt's own definitions, compiled once. Header-only, they would be compiled in
// every file and take most of the build time; Debian has no static fmt.
#include <fmt/format-inl.h>

namespace fmt::detail {

template void buffer<char>::append(const char*, const char*);
template char decimal_point_impl(locale_ref);
template thousands_sep_result<char> thousands_sep_impl(locale_ref);
template void vformat_to(buffer<char>&, string_view,
                         basic_format_args<buffer_context<char>>, locale_ref);

}  // namespace fmt::detail
