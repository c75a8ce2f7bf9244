#include "pickle/shown.h"

#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "pickle/object.h"
#include "pickle/repr.h"
#include "pickle/sharing.h"

namespace postflight {
namespace {

// Recursion is fine: tests show small values only.
class Shower {
 public:
  explicit Shower(const Value& root) : sharing_(root) {}

  std::string show(const Value& value) {
    const std::uint32_t anchor = sharing_.anchor(value);
    if (anchor == 0)
      return plain(value);
    if (met_.size() <= anchor)
      met_.resize(anchor + 1);
    if (met_[anchor])
      return fmt::format("*{}", anchor);
    met_[anchor] = true;
    return fmt::format("&{} {}", anchor, plain(value));
  }

 private:
  std::string plain(const Value& value) {
    switch (value.kind()) {
      case Kind::kNone:
        return "None";
      case Kind::kBoolean:
        return value.boolean() ? "True" : "False";
      case Kind::kInteger:
        return std::to_string(value.integer());
      case Kind::kBigInteger:
        return "big " + repr_integer(value.text());
      case Kind::kFloat:
        return repr_float(value.floating());
      case Kind::kString:
        return repr_string(value.text());
      case Kind::kLegacyString:
        return "legacy " + repr_bytes(value.text());
      case Kind::kBytes:
        return repr_bytes(value.text());
      case Kind::kByteArray:
        return "bytearray " + repr_bytes(value.text());
      case Kind::kTuple:
        return "(" + list(value.items()) +
               (value.items().size() == 1 ? ",)" : ")");
      case Kind::kFrozenSet:
        return "frozenset{" + list(value.items()) + "}";
      case Kind::kList:
        return "[" + list(value.items()) + "]";
      case Kind::kSet:
        return "set{" + list(value.items()) + "}";
      case Kind::kDict:
        return "{" + list(value.pairs()) + "}";
      case Kind::kGlobal:
        return fmt::format("<{}.{}>", value.global().module,
                           value.global().name);
      case Kind::kObject:
        return object(value.object());
      case Kind::kPersistent:
        return "persistent " + show(value.persistent_id());
      case Kind::kExtension:
        return fmt::format("extension {}", value.integer());
      case Kind::kBuffer:
        return fmt::format("buffer {}", value.integer());
      case Kind::kReadOnlyBuffer:
        return fmt::format("read-only buffer {}", value.integer());
    }
    return "no value";
  }

  std::string object(const Object& object) {
    std::string out(making_name(object.making));
    out += "(" + show(object.callable);
    if (object.making != Making::kTouched)
      out += ", " + show(object.arguments);
    if (object.making == Making::kNewEx)
      out += ", " + show(object.keywords());
    if (!object.items().empty())
      out += ", items=[" + list(object.items()) + "]";
    if (!object.pairs().empty())
      out += ", pairs={" + list(object.pairs()) + "}";
    if (!object.states().empty())
      out += ", states=[" + list(object.states()) + "]";
    return out + ")";
  }

  std::string one(const Value& value) { return show(value); }
  std::string one(const Pair& pair) {
    std::string key = show(pair.key);  // before the value: it is met first
    return key + ": " + show(pair.value);
  }

  template <class T>
  std::string list(std::span<const T> all) {
    std::string out;
    for (const T& each : all)
      out += (out.empty() ? "" : ", ") + one(each);
    return out;
  }

  Sharing sharing_;
  std::vector<bool> met_;
};

}  // namespace

std::string shown(const Value& root) {
  return Shower(root).show(root);
}

}  // namespace postflight
