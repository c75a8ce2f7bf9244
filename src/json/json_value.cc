#include "json/json_value.h"

#include <cstring>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace postflight {
namespace {

// nlohmann's parser calls this for each token. Containers that are still open
// lie on a stack of our own, so depth costs no recursion, and what is whole
// when the text breaks off can be kept.
class Handler {
 public:
  Handler(Builder& builder, const JsonOptions& options)
      : builder_(builder), options_(options) {}

  bool null() { return add(Builder::none()); }
  bool boolean(bool value) { return add(Builder::boolean(value)); }
  bool number_integer(std::int64_t value) {
    return add(builder_.integer(value));
  }
  bool number_unsigned(std::uint64_t value) {
    if (value <= std::uint64_t{INT64_MAX})
      return add(builder_.integer(static_cast<std::int64_t>(value)));
    std::string bytes(9, '\0');  // little-endian, with room for the sign
    std::memcpy(bytes.data(), &value, sizeof(value));
    return add(builder_.big_integer(bytes));
  }
  bool number_float(double value, const std::string&) {
    return add(builder_.floating(value));
  }
  bool string(std::string& value) { return add(text(value)); }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(builder_.dict()); }
  bool key(std::string& name) {
    open_.back().key = text(name);
    return true;
  }
  bool end_object() { return close(); }
  bool start_array(std::size_t) { return open(builder_.list()); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& error) {
    const std::string_view words = error.what();
    const std::size_t reason = words.find(": ");
    damage_.emplace(
        ErrorKind::kCorrupt,
        fmt::format("byte {}: {}", position == 0 ? 0 : position - 1,
                    reason == words.npos ? words : words.substr(reason + 2)));
    return false;
  }

  JsonValue finish() && {
    if (damage_)
      root_ = salvaged();
    return {root_, std::move(damage_)};
  }

 private:
  struct Open {
    Value container;
    Value key;
  };

  Value text(const std::string& value) {
    return options_.share_texts ? builder_.interned(value)
                                : builder_.string(value);
  }

  bool add(Value value) {
    if (open_.empty()) {
      root_ = value;
      return true;
    }
    const Open& parent = open_.back();
    if (parent.container.is(Kind::kDict))
      builder_.set_item(parent.container, parent.key, value);
    else
      builder_.append(parent.container, value);
    return true;
  }

  bool open(Value container) {
    if (open_.size() >= options_.limits.max_json_depth) {
      damage_.emplace(ErrorKind::kRefused,
                      fmt::format("it is nested more than {} deep "
                                  "(max_json_depth)",
                                  options_.limits.max_json_depth));
      return false;
    }
    open_.push_back({container, {}});
    return true;
  }

  bool close() {
    const Value closed = open_.back().container;
    open_.pop_back();
    return add(closed);
  }

  // The outermost dictionary, with what its last key held so far: of a list,
  // the whole items.
  std::optional<Value> salvaged() {
    if (open_.empty())
      return root_;
    if (open_.size() > 1 && open_[1].container.is(Kind::kList) &&
        open_[0].container.is(Kind::kDict))
      builder_.set_item(open_[0].container, open_[0].key, open_[1].container);
    return open_[0].container;
  }

  Builder& builder_;
  const JsonOptions& options_;
  std::vector<Open> open_;
  std::optional<Value> root_;
  std::optional<Error> damage_;
};

}  // namespace

JsonValue read_json_value(std::string_view text, Builder& builder,
                          const JsonOptions& options) {
  Handler handler(builder, options);
  nlohmann::json::sax_parse(text.begin(), text.end(), &handler);
  return std::move(handler).finish();
}

Result<Value> parse_json(Bytes text, Builder& builder,
                         const JsonOptions& options) {
  const JsonValue read = read_json_value(as_text(text), builder, options);
  if (read.damage)
    return fail(read.damage->kind(), "no JSON: {}", read.damage->message());
  return *read.root;
}

}  // namespace postflight
