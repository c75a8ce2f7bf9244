#include "pickle/nested.h"

#include "base/utf8.h"

namespace postflight {
namespace {

bool is_global(const Value& value, std::string_view module,
               std::string_view name) {
  return value.is(Kind::kGlobal) && value.global().module == module &&
         value.global().name == name;
}

bool is_string(const Value& value) {
  return value.is(Kind::kString) || value.is(Kind::kLegacyString);
}

// _codecs.encode(text, 'latin1'), which is how bytes are written before
// protocol 3.
bool is_encoding(const Object& object) {
  if (object.making != Making::kReduce ||
      !is_global(object.callable, "_codecs", "encode") ||
      !object.arguments.is(Kind::kTuple) ||
      object.arguments.items().size() != 2 || object.state_count != 0 ||
      object.more != nullptr)
    return false;
  const auto items = object.arguments.items();
  return items[0].is(Kind::kString) && is_string(items[1]) &&
         (items[1].text() == "latin1" || items[1].text() == "latin-1");
}

}  // namespace

std::optional<std::string> NestedPickle::bytes() const {
  if (!is_encoded)
    return std::string(text);
  std::string bytes(text.size(), '\0');
  std::string_view rest = text;
  bytes.resize(write_latin1(rest, bytes.data()));
  if (!rest.empty())
    return std::nullopt;
  return bytes;
}

bool is_nested_load(const Object& object) {
  return is_global(object.callable, "torch.storage", "_load_from_bytes");
}

std::optional<NestedPickle> nested_pickle(const Object& load) {
  if (load.making != Making::kReduce || !load.arguments.is(Kind::kTuple) ||
      load.arguments.items().size() != 1)
    return std::nullopt;
  const Value& argument = load.arguments.items().front();
  if (argument.is(Kind::kBytes) || argument.is(Kind::kLegacyString))
    return NestedPickle{argument.text(), false};
  if (argument.is(Kind::kObject) && is_encoding(argument.object()))
    return NestedPickle{argument.object().arguments.items()[0].text(), true};
  return std::nullopt;
}

}  // namespace postflight
