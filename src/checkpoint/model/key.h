#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace postflight {

// One step from a container to what is in it.
struct Key {
  enum class Kind : std::uint8_t {
    kRoot,       // no step at all
    kString,     // of a dict
    kInteger,    // of a dict
    kIndex,      // of a list or tuple
    kAttribute,  // of an object
    kOther,      // text: the Python repr of any other key of a dict
  };
  // How it is printed in a path; not a part of what it is.
  enum class Quotes : std::uint8_t {
    kAsNeeded,  // if it contains brackets, quotes, spaces, or is empty
    kNever,     // a key of a flat format: it is the whole path
    kAlways,    // as another path of the file would be printed alike
  };
  Kind kind = Kind::kRoot;
  std::string_view text;
  std::int64_t number = 0;
  Quotes quotes = Quotes::kAsNeeded;

  static Key string(std::string_view text) { return {Kind::kString, text, 0}; }
  static Key flat(std::string_view text) {
    return {Kind::kString, text, 0, Quotes::kNever};
  }
  static Key attribute(std::string_view text) {
    return {Kind::kAttribute, text, 0};
  }
  static Key integer(std::int64_t number) {
    return {Kind::kInteger, {}, number};
  }
  static Key index(std::uint64_t number) {
    return {Kind::kIndex, {}, static_cast<std::int64_t>(number)};
  }
  static Key other(std::string_view repr) { return {Kind::kOther, repr, 0}; }

  bool is_number() const {
    return kind == Kind::kInteger || kind == Kind::kIndex;
  }
  bool operator==(const Key& other) const {
    return kind == other.kind && text == other.text && number == other.number;
  }
};

// Appends a key to a printed path: a.b, a[0], a."b c". A dotted key of a state
// dict is printed as it is, unless its path would be that of another node
// (set_quotes). Nothing is escaped for a terminal.
void append_key(const Key& key, std::string& path);

// As torch's reader prints it: nothing is quoted.
void append_key_as_torch(const Key& key, std::string& path);

}  // namespace postflight
