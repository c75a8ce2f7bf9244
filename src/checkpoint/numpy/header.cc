#include "checkpoint/numpy/header.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/ascii.h"

namespace postflight {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

// What follows `'key':` in a dict as NumPy writes it.
std::optional<std::string_view> value_of(std::string_view dict,
                                         std::string_view key) {
  for (const char quote : {'\'', '"'}) {
    std::string quoted(1, quote);
    quoted += key;
    quoted += quote;
    std::size_t at = dict.find(quoted);
    if (at == dict.npos)
      continue;
    at = dict.find_first_not_of(kSpaces, at + quoted.size());
    if (at == dict.npos || dict[at] != ':')
      return std::nullopt;
    at = dict.find_first_not_of(kSpaces, at + 1);
    return at == dict.npos ? std::nullopt : std::optional(dict.substr(at));
  }
  return std::nullopt;
}

// The bytes of an element: '<f4', '|V3', '<U5', but no object.
std::optional<std::uint64_t> element_size(std::string_view value) {
  constexpr std::string_view kKinds = "?biufcSaUVmM";
  if (value.size() < 4 || (value[0] != '\'' && value[0] != '"'))
    return std::nullopt;
  const std::size_t end = value.find(value[0], 1);
  if (end == value.npos)
    return std::nullopt;
  std::string_view text = value.substr(1, end - 1);
  if (!text.empty() && std::string_view("<>|=").find(text[0]) != text.npos)
    text.remove_prefix(1);
  if (text.size() < 2 || kKinds.find(text[0]) == kKinds.npos)
    return std::nullopt;
  // Times have their unit behind the size.
  const std::string_view digits =
      text.substr(1, std::min(text.find('['), text.size()) - 1);
  std::uint64_t size = 0;
  const auto read =
      std::from_chars(digits.data(), digits.data() + digits.size(), size);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size())
    return std::nullopt;
  return text[0] == 'U' ? checked_multiply(size, std::uint64_t{4})
                        : std::optional(size);
}

// The quoted text without its byte order: "f4".
std::string_view element_of(std::string_view value) {
  const std::size_t end = value.find(value[0], 1);
  std::string_view text = value.substr(1, end - 1);
  if (std::string_view("<>|=").find(text[0]) != text.npos)
    text.remove_prefix(1);
  return text;
}

std::optional<std::uint64_t> element_count(std::string_view value,
                                           std::vector<std::int64_t>& shape);

// A list of fields, each of a name, a dtype and perhaps a shape, as NumPy
// writes it: [('a', '<f4'), ('b', '|u1', (3,)), ('c', [('d', '<i2')])].
class Fields {
 public:
  explicit Fields(std::string_view text) : rest_(text) {}

  // The bytes of an element; empty if it is not such a list, or holds objects.
  std::optional<std::uint64_t> size(int depth = 0) {
    constexpr int kDeepest = 16;
    if (depth > kDeepest || !take('['))
      return std::nullopt;
    std::uint64_t all = 0;
    while (!take(']')) {
      const auto one = field(depth);
      const auto sum = one ? checked_add(all, *one) : std::nullopt;
      if (!sum)
        return std::nullopt;
      all = *sum;
      take(',');
    }
    return all;
  }

 private:
  std::optional<std::uint64_t> field(int depth) {
    if (!take('('))
      return std::nullopt;
    // A title stands before the name.
    if (take('(')) {
      if (!text() || !take(',') || !text() || !take(')'))
        return std::nullopt;
    } else if (!text()) {
      return std::nullopt;
    }
    if (!take(','))
      return std::nullopt;
    std::optional<std::uint64_t> one;
    if (spaced().starts_with('[')) {
      one = size(depth + 1);
    } else {
      const std::string_view before = spaced();
      if (text())
        one = element_size(before);
    }
    if (one && take(',') && spaced().starts_with('(')) {
      std::vector<std::int64_t> shape;
      const auto count = element_count(rest_, shape);
      one = count ? checked_multiply(*one, *count) : std::nullopt;
      rest_.remove_prefix(std::min(rest_.find(')'), rest_.size() - 1) + 1);
    }
    return take(')') ? one : std::nullopt;
  }

  std::string_view spaced() {
    rest_.remove_prefix(
        std::min(rest_.find_first_not_of(kSpaces), rest_.size()));
    return rest_;
  }

  bool take(char c) {
    if (!spaced().starts_with(c))
      return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool text() {
    const std::string_view all = spaced();
    if (all.empty() || (all[0] != '\'' && all[0] != '"'))
      return false;
    const std::size_t end = all.find(all[0], 1);
    if (end == all.npos)
      return false;
    rest_.remove_prefix(end + 1);
    return true;
  }

  std::string_view rest_;
};

// The product of a tuple of numbers.
std::optional<std::uint64_t> element_count(std::string_view value,
                                           std::vector<std::int64_t>& shape) {
  if (value.empty() || value[0] != '(')
    return std::nullopt;
  const std::size_t end = value.find(')');
  if (end == value.npos)
    return std::nullopt;
  std::string_view rest = value.substr(1, end - 1);
  std::uint64_t count = 1;
  while (!(rest = trimmed(rest, " ,")).empty()) {
    std::uint64_t size = 0;
    const auto read =
        std::from_chars(rest.data(), rest.data() + rest.size(), size);
    if (read.ec != std::errc() ||
        size > std::numeric_limits<std::int64_t>::max())
      return std::nullopt;
    const auto product = checked_multiply(count, size);
    if (!product)
      return std::nullopt;
    count = *product;
    shape.push_back(static_cast<std::int64_t>(size));
    rest.remove_prefix(static_cast<std::size_t>(read.ptr - rest.data()));
    if (!rest.empty() && rest[0] != ',' && rest[0] != ' ')
      return std::nullopt;
  }
  return count;
}

}  // namespace

bool is_numpy_file(Bytes file) {
  return as_text(file).starts_with(kMagic);
}

std::optional<NumpyHeader> read_numpy_header(Bytes file) {
  constexpr std::size_t kFirst = 10;
  constexpr std::size_t kLater = 12;
  if (!is_numpy_file(file) || file.size() < kLater)
    return std::nullopt;
  const auto version = static_cast<unsigned>(file[kMagic.size()]);
  const bool first = version <= 1;
  const std::uint64_t size =
      first ? load_little_endian<std::uint16_t>(file.data() + 8)
            : load_little_endian<std::uint32_t>(file.data() + 8);
  const std::uint64_t front = first ? kFirst : kLater;
  if (version < 1 || version > 3 || size > file.size() - front)
    return std::nullopt;
  const std::string_view dict = as_text(file.subspan(front, size));
  const auto descr = value_of(dict, "descr");
  const auto shape = value_of(dict, "shape");
  if (!descr || !shape)
    return std::nullopt;
  NumpyHeader header{.descr = descr->substr(0, descr->find('\n')),
                     .data = front + size};
  // Python takes the last of equal keys and undoes escapes. All names that
  // NumPy has for objects have one of these in them.
  const bool ambiguous = dict.find("descr") != dict.rfind("descr") ||
                         dict.find("shape") != dict.rfind("shape") ||
                         dict.find('\\') != dict.npos;
  const bool structured = descr->starts_with('[');
  const auto element = ambiguous    ? std::optional<std::uint64_t>()
                       : structured ? Fields(*descr).size()
                                    : element_size(*descr);
  header.objects = !element && (ambiguous || dict.find('O') != dict.npos ||
                                dict.find("object") != dict.npos);
  const auto count = element_count(*shape, header.shape);
  if (!element || !count)
    return header;
  header.bytes = checked_multiply(*element, *count);
  if (structured)
    return header;
  header.element = element_of(*descr);
  header.big_endian = descr->substr(1).starts_with('>');
  const auto order = value_of(dict, "fortran_order");
  header.fortran = order && order->starts_with("True");
  return header;
}

}  // namespace postflight
