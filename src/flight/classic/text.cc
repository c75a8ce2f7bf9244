#include "flight/classic/text.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pickle/repr.h"

namespace postflight {

std::string sizes_text(const Tables& tables, SizesId sizes) {
  std::string text = "[";
  for (const std::span<const std::int64_t> shape : tables.shapes(sizes))
    text += fmt::format("{}[{}]", text.size() > 1 ? ", " : "",
                        fmt::join(shape, ", "));
  return text + "]";
}

std::string dtypes_text(const Tables& tables, DtypesId dtypes) {
  std::string text = "[";
  for (const TextId name : tables.dtypes(dtypes)) {
    if (text.size() > 1)
      text += ", ";
    text += repr_string(tables.text(name));
  }
  return text + "]";
}

std::string dtype_set_text(const Tables& tables, DtypesId dtypes) {
  std::vector<std::string_view> names;
  for (const TextId name : tables.dtypes(dtypes))
    names.push_back(tables.text(name));
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (names.empty())
    return "set()";
  std::string text = "{";
  for (const std::string_view name : names) {
    if (text.size() > 1)
      text += ", ";
    text += repr_string(name);
  }
  return text + "}";
}

std::string rank_set_python(std::span<const Rank> ranks) {
  if (ranks.empty())
    return "set()";
  std::string text = "{";
  for (const Rank rank : ranks)
    text += fmt::format("{}{}", text.size() > 1 ? ", " : "", rank.value);
  return text + "}";
}

std::string frames_text(const Tables& tables, StackId stack) {
  std::string text = "[";
  for (const FrameId id : tables.stack(stack)) {
    const Frame& frame = tables.frame(id);
    text += fmt::format("{}{{'name': {}, 'filename': {}, 'line': {}}}",
                        text.size() > 1 ? ", " : "",
                        repr_string(tables.text(frame.function)),
                        repr_string(tables.text(frame.file)), frame.line);
  }
  return text + "]";
}

}  // namespace postflight
