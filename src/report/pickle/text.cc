#include "report/pickle/text.h"

#include <algorithm>
#include <deque>
#include <vector>

#include <fmt/format.h>

#include "base/display_width.h"
#include "base/escape.h"
#include "pickle/parts.h"
#include "pickle/repr.h"
#include "pickle/sharing.h"
#include "report/layout.h"

namespace postflight {
namespace {

// Longer than any real name, and short enough to be printed a thousand times.
constexpr std::size_t kLongestName = 200;
constexpr std::size_t kLongestShared = 20;

std::string shown_name(std::string_view name, const Sharing& sharing) {
  const std::size_t most =
      sharing.anchor(name) == 0 ? kLongestName : kLongestShared;
  if (name.size() <= most)
    return escape_for_terminal(name);
  return fmt::format("{}… ({} bytes)",
                     escape_for_terminal(name.substr(0, most)), name.size());
}

std::string dotted(const Global& global, const Sharing& sharing) {
  return fmt::format("{}.{}", shown_name(global.module, sharing),
                     shown_name(global.name, sharing));
}

struct Brackets {
  std::string open;
  std::string_view close;
};

// What is written around the parts of a container or object. The name of a
// callable comes before the bracket; any other callable is written as the first
// part.
Brackets brackets(const Value& value, const Sharing& sharing) {
  switch (value.kind()) {
    case Kind::kTuple:
      return {"(", value.items().size() == 1 ? ",)" : ")"};
    case Kind::kList:
      return {"[", "]"};
    case Kind::kSet:
      return {value.items().empty() ? "set(" : "{",
              value.items().empty() ? ")" : "}"};
    case Kind::kFrozenSet:
      return {"frozenset({", "})"};
    case Kind::kDict:
      return {"{", "}"};
    case Kind::kPersistent:
      return {"persistent(", ")"};
    default:
      break;
  }
  const Object& object = value.object();
  const std::string name = object.callable.is(Kind::kGlobal)
                               ? dotted(object.callable.global(), sharing)
                               : std::string();
  switch (object.making) {
    case Making::kNew:
    case Making::kNewEx:
      return {name + ".__new__(", ")"};
    case Making::kTouched:
      return {name + "<touched>(", ")"};
    default:
      return {name + "(", ")"};
  }
}

// The walk keeps a path instead of recursing: a pickle can nest a million deep.
class TextTree {
 public:
  TextTree(const Value& root, const PickleTextOptions& options, Output& out)
      : options_(options),
        sharing_(root),
        layout_({.width = options.width, .margin = options.margin}, out) {
    begin(root);
    while (!path_.empty())
      step();
    layout_.finish();
  }

 private:
  struct Place {
    Value value;
    std::string_view close;
    bool spliced = false;  // a call's arguments, without brackets of their own
    std::size_t next = 0;
    std::size_t shown = 0;  // items and pairs
  };

  void begin(const Value& value) {
    const std::uint32_t anchor = sharing_.anchor(value);
    if (anchor < shown_.size() && shown_[anchor]) {
      layout_.text(fmt::format("*{}", anchor));
      return;
    }
    std::string label;
    if (anchor != 0) {
      label = fmt::format("&{} ", anchor);
      shown_.resize(std::max<std::size_t>(shown_.size(), anchor + 1));
      shown_[anchor] = true;
    }
    if (value.identity() == nullptr || is_leaf(value)) {
      layout_.text(label + leaf(value));
      return;
    }
    Brackets around = brackets(value, sharing_);
    around.open.insert(0, label);
    if (!options_.all && path_.size() >= options_.depth &&
        part_count(value) > 0) {
      layout_.text(around.open + std::string(ellipsis()) +
                   std::string(around.close));
      return;
    }
    layout_.open(around.open);
    path_.push_back({value, around.close});
  }

  void step() {
    Place& place = path_.back();
    if (place.next == part_count(place.value)) {
      const Place done = place;
      path_.pop_back();
      if (!done.spliced)
        layout_.close(done.close);
      return;
    }
    const Part part = part_at(place.value, place.next);
    const bool is_key = part.role == Role::kKey;
    if ((is_key || part.role == Role::kItem) &&
        ++place.shown > (is_key ? options_.pairs : options_.items) &&
        !options_.all) {
      cut(place, part.role);
      return;
    }
    ++place.next;
    show(part);
  }

  // Omits the rest of the items or pairs, unless there are only two.
  void cut(Place& place, Role role) {
    const std::size_t end =
        place.value.is(Kind::kObject)
            ? part_count(place.value) - place.value.object().states().size()
            : part_count(place.value);
    const std::size_t left = (end - place.next) / (role == Role::kKey ? 2 : 1);
    if (left <= 2) {
      ++place.next;
      show(part_at(place.value, place.next - 1));
      return;
    }
    place.next = end;
    layout_.item();
    layout_.text(fmt::format("{} {} more", ellipsis(), left));
  }

  void show(const Part& part) {
    switch (part.role) {
      case Role::kCallable:
        if (part.value.is(Kind::kGlobal))
          return;  // already before the bracket
        layout_.item();
        layout_.text("callable=");
        break;
      case Role::kArguments:
        if (part.value.is(Kind::kTuple) && sharing_.anchor(part.value) == 0) {
          path_.push_back({part.value, {}, true});
          return;
        }
        layout_.item();
        layout_.text("*");
        break;
      case Role::kKeywords:
        layout_.item();
        layout_.text("**");
        break;
      case Role::kState:
        layout_.item();
        layout_.text("state=");
        break;
      case Role::kValue:
        layout_.text(": ");
        break;
      default:
        layout_.item();
        break;
    }
    begin(part.value);
  }

  static bool is_leaf(const Value& value) {
    return value.kind() < Kind::kTuple || value.is(Kind::kGlobal);
  }

  std::string leaf(const Value& value) const {
    switch (value.kind()) {
      case Kind::kNone:
        return "None";
      case Kind::kBoolean:
        return value.boolean() ? "True" : "False";
      case Kind::kInteger:
        return fmt::format("{}", value.integer());
      case Kind::kBigInteger:
        return cut_text(repr_integer(value.text()));
      case Kind::kFloat:
        return repr_float(value.floating());
      case Kind::kString:
        return text(value, repr_string);
      case Kind::kLegacyString:
      case Kind::kBytes:
        return text(value, repr_bytes);
      case Kind::kByteArray:
        return "bytearray(" + text(value, repr_bytes) + ")";
      case Kind::kGlobal:
        return "<" + dotted(value.global(), sharing_) + ">";
      case Kind::kExtension:
        return fmt::format("extension {}", value.integer());
      case Kind::kBuffer:
        return fmt::format("buffer {}", value.integer());
      case Kind::kReadOnlyBuffer:
        return fmt::format("read-only buffer {}", value.integer());
      default:
        return value.is(Kind::kTuple) ? "()" : "frozenset()";
    }
  }

  std::string text(const Value& value,
                   std::string (*repr)(std::string_view)) const {
    const std::string_view text = value.text();
    if (options_.all || text.size() <= options_.text)
      return repr(text);
    std::size_t end = options_.text;
    while (end > 0 && (text[end] & 0xc0) == 0x80)  // not inside a character
      --end;
    return fmt::format("{}{} ({} bytes)", repr(text.substr(0, end)), ellipsis(),
                       text.size());
  }

  std::string cut_text(std::string digits) const {
    if (options_.all || digits.size() <= options_.text)
      return digits;
    return fmt::format("{}{} ({} digits)", digits.substr(0, options_.text),
                       ellipsis(), digits.size());
  }

  std::string_view ellipsis() const { return options_.unicode ? "…" : "..."; }

  PickleTextOptions options_;
  Sharing sharing_;
  Layout layout_;
  std::deque<Place>
      path_;  // a vector would take three times the memory to grow
  std::vector<bool> shown_;  // by anchor
};

}  // namespace

void write_pickle_text(const Value& root, const PickleTextOptions& options,
                       Output& out) {
  TextTree(root, options, out);
}

std::string pickle_line(const Value& root, std::size_t width) {
  std::string line;
  {
    Output out([&line](std::string_view piece) { line += piece; });
    TextTree(root,
             {.width = std::string::npos / 2,
              .pairs = 8,
              .items = 8,
              .depth = 4,
              .text = 60},
             out);
  }
  line.pop_back();
  return cut_to_width(line, width);
}

}  // namespace postflight
