#include "checkpoint/model/value_repr.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "pickle/object.h"
#include "pickle/repr.h"

namespace postflight {
namespace {

constexpr int kDeepestShown = 16;

std::string dotted(const Global& global) {
  if (global.module == "builtins" || global.module == "__builtin__")
    return std::string(global.name);
  return fmt::format("{}.{}", global.module, global.name);
}

bool is_call(const Value& value, std::string_view module,
             std::string_view name) {
  return value.is(Kind::kObject) && value.object().callable.is(Kind::kGlobal) &&
         value.object().callable.global().module == module &&
         value.object().callable.global().name == name &&
         value.object().arguments.is(Kind::kTuple);
}

// As protocols before 3 write bytes.
bool is_bytes_call(const Value& value) {
  if (!is_call(value, "_codecs", "encode"))
    return false;
  const std::span<const Value> arguments = value.object().arguments.items();
  return arguments.size() == 2 && arguments[0].is(Kind::kString) &&
         arguments[1].is(Kind::kString) && arguments[1].text() == "latin1";
}

// Recursion ends at kDeepestShown, or once there are `most` bytes.
class Writer {
 public:
  explicit Writer(std::size_t most) : most_(most) {}

  void write(const Value& value, int depth) {
    if (text_.size() > most_)
      return;
    if (depth > kDeepestShown) {
      text_ += "...";
      return;
    }
    switch (value.kind()) {
      case Kind::kNone:
        text_ += "None";
        return;
      case Kind::kBoolean:
        text_ += value.boolean() ? "True" : "False";
        return;
      case Kind::kInteger:
        text_ += fmt::format("{}", value.integer());
        return;
      case Kind::kBigInteger:
        text_ += repr_integer(value.text());
        return;
      case Kind::kFloat:
        text_ += repr_float(value.floating());
        return;
      case Kind::kString:
      case Kind::kLegacyString:
        text_ += repr_string(front(value.text()));
        return;
      case Kind::kBytes:
        text_ += repr_bytes(front(value.text()));
        return;
      case Kind::kByteArray:
        text_ += fmt::format("bytearray({})", repr_bytes(front(value.text())));
        return;
      case Kind::kTuple:
        items(value.items(), "(", value.items().size() == 1 ? ",)" : ")",
              depth);
        return;
      case Kind::kList:
        items(value.items(), "[", "]", depth);
        return;
      case Kind::kSet:
        if (value.items().empty())
          text_ += "set()";
        else
          items(value.items(), "{", "}", depth);
        return;
      case Kind::kFrozenSet:
        if (value.items().empty())
          text_ += "frozenset()";
        else
          items(value.items(), "frozenset({", "})", depth);
        return;
      case Kind::kDict:
        pairs(value.pairs(), depth);
        return;
      case Kind::kGlobal:
        text_ += global(value.global());
        return;
      case Kind::kObject:
        object(value.object(), value, depth);
        return;
      case Kind::kPersistent:
        text_ += "<persistent>";
        return;
      default:
        text_ += "<out of band>";
        return;
    }
  }

  std::string take() {
    if (text_.size() > most_) {
      text_.resize(most_);
      while (!text_.empty() && (text_.back() & 0xc0) == 0x80)
        text_.pop_back();
      if (!text_.empty() && (text_.back() & 0x80) != 0)
        text_.pop_back();
      text_ += "...";
    }
    return std::move(text_);
  }

 private:
  // The part of a long text that can be shown.
  std::string_view front(std::string_view text) const {
    return text.substr(0, most_ + 4);
  }

  static std::string global(const Global& global) {
    if (global.module == "torch")
      return fmt::format("torch.{}", repr_free(global.name));
    return fmt::format("<class '{}'>", repr_free(dotted(global)));
  }

  // A name from a file, with unprintable characters escaped.
  static std::string repr_free(std::string_view name) {
    std::string quoted = repr_string(name.substr(0, 200));
    return quoted.substr(1, quoted.size() - 2);
  }

  void items(std::span<const Value> all, std::string_view open,
             std::string_view close, int depth) {
    text_ += open;
    for (std::size_t i = 0; i < all.size() && text_.size() <= most_; ++i) {
      if (i > 0)
        text_ += ", ";
      write(all[i], depth + 1);
    }
    text_ += close;
  }

  void pairs(std::span<const Pair> all, int depth) {
    text_ += "{";
    for (std::size_t i = 0; i < all.size() && text_.size() <= most_; ++i) {
      if (i > 0)
        text_ += ", ";
      write(all[i].key, depth + 1);
      text_ += ": ";
      write(all[i].value, depth + 1);
    }
    text_ += "}";
  }

  void object(const Object& object, const Value& value, int depth) {
    const bool has_arguments = object.arguments.is(Kind::kTuple);
    const std::span<const Value> arguments =
        has_arguments ? object.arguments.items() : std::span<const Value>();
    if (is_call(value, "torch", "Size") && arguments.size() == 1 &&
        arguments[0].is(Kind::kTuple)) {
      items(arguments[0].items(), "torch.Size([", "])", depth);
      return;
    }
    if (is_bytes_call(value)) {
      std::string_view text = front(arguments[0].text());
      std::string bytes(text.size(), '\0');
      bytes.resize(write_latin1(text, bytes.data()));
      text_ += repr_bytes(bytes);
      return;
    }
    const bool empty_bytes = (is_call(value, "__builtin__", "bytes") ||
                              is_call(value, "builtins", "bytes")) &&
                             arguments.empty();
    if (empty_bytes) {
      text_ += "b''";
      return;
    }
    std::string name = object.callable.is(Kind::kGlobal)
                           ? repr_free(dotted(object.callable.global()))
                           : std::string("<call>");
    text_ += name;
    text_ += "(";
    bool first = true;
    for (const Value& argument : arguments) {
      if (text_.size() > most_)
        break;
      if (!first)
        text_ += ", ";
      first = false;
      write(argument, depth + 1);
    }
    if (!object.items().empty())
      items(object.items(), first ? "[" : ", [", "]", depth);
    if (!object.pairs().empty()) {
      text_ += first ? "" : ", ";
      pairs(object.pairs(), depth);
    }
    for (const Value& state : object.states()) {
      text_ += first && object.items().empty() && object.pairs().empty()
                   ? "state="
                   : ", state=";
      write(state, depth + 1);
    }
    text_ += ")";
  }

  const std::size_t most_;
  std::string text_;
};

}  // namespace

std::string value_repr(const Value& value, std::size_t most) {
  Writer writer(most);
  writer.write(value, 0);
  return writer.take();
}

std::string value_type(const Value& value) {
  switch (value.kind()) {
    case Kind::kNone:
      return "NoneType";
    case Kind::kBoolean:
      return "bool";
    case Kind::kInteger:
    case Kind::kBigInteger:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
    case Kind::kLegacyString:
      return "str";
    case Kind::kBytes:
      return "bytes";
    case Kind::kByteArray:
      return "bytearray";
    case Kind::kTuple:
      return "tuple";
    case Kind::kList:
      return "list";
    case Kind::kSet:
      return "set";
    case Kind::kFrozenSet:
      return "frozenset";
    case Kind::kDict:
      return "dict";
    case Kind::kGlobal:
      return value.global().module == "torch" ? "torch.dtype" : "type";
    case Kind::kObject:
      if (is_bytes_call(value))
        return "bytes";
      return value.object().callable.is(Kind::kGlobal)
                 ? dotted(value.object().callable.global())
                 : "object";
    default:
      return "object";
  }
}

}  // namespace postflight
