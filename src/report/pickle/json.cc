#include "report/pickle/json.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

#include <fmt/format.h>

#include "base/json_string.h"
#include "base/utf8.h"
#include "pickle/parts.h"
#include "pickle/repr.h"
#include "pickle/sharing.h"

namespace postflight {
namespace {

constexpr std::int64_t kExact = std::int64_t{1} << 53;  // JSON's integers

// Whether a dict can be a JSON object: its keys are text that stands there as
// it is, and none could be taken for one of ours.
bool is_json_object(const Value& dict, const Sharing& sharing) {
  return std::ranges::all_of(dict.pairs(), [&sharing](const Pair& pair) {
    return pair.key.is(Kind::kString) && !pair.key.text().starts_with('$') &&
           sharing.anchor(pair.key) == 0 && is_utf8(pair.key.text());
  });
}

class JsonTree {
 public:
  JsonTree(const Value& root, Output& out) : sharing_(root), out_(out) {
    begin(root);
    while (!path_.empty())
      step();
  }

 private:
  struct Place {
    Value value;
    std::string_view close;
    bool as_object = false;  // a dict with plain keys
    std::size_t next = 0;
    Role section = Role::kItem;  // of an object: the list that is open
    bool in_section = false;
  };

  void begin(const Value& value) {
    std::string_view close;
    if (const std::uint32_t anchor = sharing_.anchor(value); anchor != 0) {
      if (!open_anchor(anchor))
        return;
      close = "}";
    }
    switch (value.kind()) {
      case Kind::kList:
        return enter(value, "[", close.empty() ? "]" : "]}");
      case Kind::kTuple:
        return enter(value, "{\"$tuple\":[", close.empty() ? "]}" : "]}}");
      case Kind::kSet:
        return enter(value, "{\"$set\":[", close.empty() ? "]}" : "]}}");
      case Kind::kFrozenSet:
        return enter(value, "{\"$frozenset\":[", close.empty() ? "]}" : "]}}");
      case Kind::kPersistent:
        return enter(value, "{\"$persistent\":", close.empty() ? "}" : "}}");
      case Kind::kDict:
        if (is_json_object(value, sharing_)) {
          enter(value, "{", close.empty() ? "}" : "}}");
          path_.back().as_object = true;
          return;
        }
        return enter(value, "{\"$dict\":[", close.empty() ? "]}" : "]}}");
      case Kind::kObject:
        return enter(value,
                     fmt::format("{{\"$making\":\"{}\"",
                                 making_name(value.object().making)),
                     close.empty() ? "}" : "}}");
      default:
        leaf(value);
        out_ += close;
    }
  }

  // Writes what stands before a shared value, or all of it if that was shown
  // before; returns whether the value is to follow.
  bool open_anchor(std::uint32_t anchor) {
    if (anchor < shown_.size() && shown_[anchor]) {
      out_ += fmt::format("{{\"$ref\":{}}}", anchor);
      return false;
    }
    shown_.resize(std::max<std::size_t>(shown_.size(), anchor + 1));
    shown_[anchor] = true;
    out_ += fmt::format("{{\"$anchor\":{},\"value\":", anchor);
    return true;
  }

  void enter(const Value& value, std::string_view open,
             std::string_view close) {
    out_ += open;
    path_.push_back({value, close});
  }

  void step() {
    Place& place = path_.back();
    if (place.next == part_count(place.value)) {
      if (place.in_section)
        out_ += "]";
      out_ += place.close;
      path_.pop_back();
      return;
    }
    const std::size_t index = place.next++;
    const Part part = part_at(place.value, index);
    if (place.value.is(Kind::kObject))
      separate_section(place, part.role);
    else if (part.role == Role::kValue && place.as_object)
      out_ += ":";
    else if (index != 0)
      out_ += ",";
    begin(part.value);
  }

  // An object's parts stand under names; items, pairs and states are lists.
  void separate_section(Place& place, Role role) {
    switch (role) {
      case Role::kCallable:
        out_ += ",\"callable\":";
        return;
      case Role::kArguments:
        out_ += ",\"arguments\":";
        return;
      case Role::kKeywords:
        out_ += ",\"keywords\":";
        return;
      default:
        break;
    }
    // As in $dict, keys and values are one flat list.
    const Role section = role == Role::kValue ? Role::kKey : role;
    if (place.in_section && place.section == section) {
      out_ += ",";
      return;
    }
    if (place.in_section)
      out_ += "]";
    place.in_section = true;
    place.section = section;
    out_ += section == Role::kItem  ? ",\"items\":["
            : section == Role::kKey ? ",\"pairs\":["
                                    : ",\"states\":[";
  }

  void leaf(const Value& value) {
    switch (value.kind()) {
      case Kind::kNone:
        out_ += "null";
        return;
      case Kind::kBoolean:
        out_ += value.boolean() ? "true" : "false";
        return;
      case Kind::kInteger: {
        const std::int64_t number = value.integer();
        const bool exact = number <= kExact && number >= -kExact;
        out_ += exact ? fmt::format("{}", number)
                      : fmt::format("{{\"$int\":\"{}\"}}", number);
        return;
      }
      case Kind::kBigInteger:
        out_ += fmt::format("{{\"$int\":\"{}\"}}", repr_integer(value.text()));
        return;
      case Kind::kFloat:
        out_ += number(value.floating());
        return;
      case Kind::kString:
        return string(value.text());
      case Kind::kLegacyString:
        return wrapped("$legacy", value.text());
      case Kind::kBytes:
        return wrapped("$bytes", value.text());
      case Kind::kByteArray:
        return wrapped("$bytearray", value.text());
      case Kind::kGlobal:
        out_ += "{\"$global\":[";
        name(value.global().module);
        out_ += ",";
        name(value.global().name);
        out_ += "]}";
        return;
      case Kind::kExtension:
        out_ += fmt::format("{{\"$extension\":{}}}", value.integer());
        return;
      case Kind::kReadOnlyBuffer:
        out_ += fmt::format("{{\"$buffer\":{},\"readonly\":true}}",
                            value.integer());
        return;
      default:
        out_ += fmt::format("{{\"$buffer\":{}}}", value.integer());
        return;
    }
  }

  static std::string number(double value) {
    if (std::isnan(value))
      return "{\"$float\":\"NaN\"}";
    if (std::isinf(value))
      return value > 0 ? "{\"$float\":\"Infinity\"}"
                       : "{\"$float\":\"-Infinity\"}";
    return repr_float(value);
  }

  void name(std::string_view name) {
    const std::uint32_t anchor = sharing_.anchor(name);
    if (anchor != 0 && !open_anchor(anchor))
      return;
    std::string json;
    static_cast<void>(append_json_string(name, json));
    out_ += json;
    if (anchor != 0)
      out_ += "}";
  }

  // Lone surrogates are fine in JSON, other broken UTF-8 is not.
  void string(std::string_view text) {
    std::string json;
    if (append_json_string(text, json))
      out_ += json;
    else
      out_ += fmt::format("{{\"$str\":{},\"escaped\":true}}", json);
  }

  void wrapped(std::string_view key, std::string_view text) {
    std::string json;
    const bool exact = append_json_string(text, json);
    out_ += fmt::format("{{\"{}\":{}{}}}", key, json,
                        exact ? "" : ",\"escaped\":true");
  }

  Sharing sharing_;
  Output& out_;
  std::deque<Place> path_;  // a vector would take three times as much to grow
  std::vector<bool> shown_;
};

}  // namespace

void write_pickle_json(const Value& root, Output& out) {
  JsonTree(root, out);
}

}  // namespace postflight
