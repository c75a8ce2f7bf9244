#include "checkpoint/json_values.h"

#include <cstring>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace postflight {
namespace {

// What nlohmann's parser calls; it keeps no depth on the stack of calls.
class Maker {
 public:
  explicit Maker(Builder& builder) : builder_(builder) {}

  bool null() { return add(Value::none()); }
  bool boolean(bool value) { return add(Value::boolean(value)); }
  bool number_integer(std::int64_t value) {
    return add(builder_.integer(value));
  }
  bool number_unsigned(std::uint64_t value) {
    if (value <= static_cast<std::uint64_t>(INT64_MAX))
      return add(builder_.integer(static_cast<std::int64_t>(value)));
    std::string bytes(9, '\0');
    std::memcpy(bytes.data(), &value, sizeof(value));
    return add(builder_.big_integer(bytes));
  }
  bool number_float(double value, const std::string&) {
    return add(builder_.floating(value));
  }
  bool string(std::string& text) { return add(builder_.string(text)); }
  bool binary(std::vector<std::uint8_t>&) { return false; }
  bool start_object(std::size_t) { return open(builder_.dict()); }
  bool key(std::string& text) {
    open_.back().key = builder_.string(text);
    return true;
  }
  bool end_object() { return close(); }
  bool start_array(std::size_t) {
    return open(builder_.list(std::span<const Value>()));
  }
  bool end_array() { return close(); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& error) {
    position_ = position;
    message_ = error.what();
    return false;
  }

  const Value& root() const { return root_; }
  std::size_t position() const { return position_; }
  // Without nlohmann's own numbering before it.
  std::string message() const {
    const std::size_t end = message_.find("] ");
    return end == std::string::npos ? message_ : message_.substr(end + 2);
  }

 private:
  struct Container {
    Value value;
    Value key;
  };

  bool add(Value value) {
    if (open_.empty())
      root_ = value;
    else if (open_.back().value.is(Kind::kDict))
      builder_.set_item(open_.back().value, open_.back().key, value);
    else
      builder_.append(open_.back().value, value);
    return true;
  }
  bool open(Value container) {
    add(container);
    open_.push_back({container, {}});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  Builder& builder_;
  std::vector<Container> open_;
  Value root_;
  std::size_t position_ = 0;
  std::string message_;
};

}  // namespace

Result<Value> parse_json(Bytes text, Builder& builder) {
  Maker maker(builder);
  const std::string_view view = as_text(text);
  if (!nlohmann::json::sax_parse(view.begin(), view.end(), &maker))
    return fail(ErrorKind::kCorrupt, "no JSON from byte {} on: {}",
                maker.position(), maker.message());
  return maker.root();
}

}  // namespace postflight
