#include "stacks/locals.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "pickle/repr.h"
#include "profile/python/code_reader.h"

namespace postflight {
namespace {

constexpr std::size_t kMostVariables = 100;
constexpr std::size_t kMostItems = 8;
constexpr std::size_t kMostCharacters = 80;   // of one text
constexpr std::size_t kMostValueBytes = 200;  // of one variable
constexpr int kDeepest = 3;

// Of objects in all supported versions, on x86-64.
constexpr std::uint64_t kTypeOf = 8;
constexpr std::uint64_t kSizeOf = 16;
constexpr std::uint64_t kFirstField = 16;
constexpr std::uint64_t kListItems = 24;
constexpr std::uint64_t kTypeName = 24;
constexpr std::uint64_t kTypeFlags = 168;
constexpr std::uint64_t kDigits = 24;
constexpr std::uint64_t kDictUsed = 16;
constexpr std::uint64_t kDictKeys = 32;
constexpr std::uint64_t kSetUsed = 24;
constexpr std::uint64_t kSetMask = 32;
constexpr std::uint64_t kSetTable = 40;
constexpr std::uint64_t kErrorArguments = 24;
// PyArrayObject, whose layout numpy keeps.
constexpr std::uint64_t kArrayDimensions = 24;
constexpr std::uint64_t kArrayShape = 32;

// Bits of tp_flags: Py_TPFLAGS_LONG_SUBCLASS and so on.
enum class Family : std::uint8_t {
  kInteger = 24,
  kList = 25,
  kTuple = 26,
  kBytes = 27,
  kText = 28,
  kDict = 29,
  kError = 30,
  kType = 31,
  kOther = 64
};

// Writes one value. Anything may be wrong in that memory: each part is checked
// or bounded, and what cannot be read becomes "?".
class ValueText {
 public:
  ValueText(const Memory& memory, const PythonLayout& layout)
      : memory_(memory), layout_(layout) {}

  // Nothing for a variable that is a cell without a value.
  std::optional<std::string> of_variable(std::uint64_t object) {
    const std::optional<Type> type = type_of(object);
    if (type && type->is_built_in("cell")) {
      object = word(object + kFirstField).value_or(0);
      if (object == 0)
        return std::nullopt;
    }
    out_.clear();
    show(object, 0);
    return std::move(out_);
  }

 private:
  struct Type {
    std::string name;
    std::uint64_t flags = 0;

    bool is(Family family) const {
      return (flags >> static_cast<unsigned>(family) & 1) != 0;
    }
    // Of Python itself or a C extension, not a class that only has its name.
    bool is_built_in(std::string_view wanted) const {
      constexpr unsigned kHeapType = 9;
      return name == wanted && (flags >> kHeapType & 1) == 0;
    }
    Family family() const {
      for (unsigned bit = 24; bit < 32; ++bit)
        if (is(static_cast<Family>(bit)))
          return static_cast<Family>(bit);
      return Family::kOther;
    }
  };

  std::optional<std::uint64_t> word(std::uint64_t address) const {
    return memory_.load<std::uint64_t>(address);
  }

  std::optional<Type> type_of(std::uint64_t object) const {
    if (object == 0 || object % 8 != 0)
      return std::nullopt;
    const auto type = word(object + kTypeOf);
    if (!type || *type == 0 || *type % 8 != 0)
      return std::nullopt;
    // A type's own type is a type, too.
    const auto meta = word(*type + kTypeOf);
    const auto meta_flags = meta ? word(*meta + kTypeFlags) : std::nullopt;
    const auto flags = word(*type + kTypeFlags);
    const auto name = word(*type + kTypeName);
    if (!meta_flags || !flags || !name ||
        !Type{.name = {}, .flags = *meta_flags}.is(Family::kType))
      return std::nullopt;
    return Type{.name = c_text(*name), .flags = *flags};
  }

  // The name of a type; it may end close to the end of its mapping.
  std::string c_text(std::uint64_t address) const {
    std::array<std::byte, 64> bytes = {};
    std::size_t size = bytes.size();
    while (size >= 8 && !memory_.read(address, std::span(bytes).first(size)))
      size /= 2;
    std::string_view text = as_text(bytes);
    text = text.substr(0, text.find('\0'));
    return text.empty() ? "?" : std::string(text);
  }

  void show(std::uint64_t object, int depth) {
    if (out_.size() >= kMostValueBytes) {
      out_ += "...";
      return;
    }
    const std::optional<Type> type = type_of(object);
    if (!type) {
      out_ += "?";
      return;
    }
    if (type->is_built_in("NoneType")) {
      out_ += "None";
      return;
    }
    const std::size_t before = out_.size();
    if (!show_plain(object, *type, depth)) {
      out_.resize(before);
      out_ += fmt::format("<{} at {:#x}>", type->name, object);
      return;
    }
    if (const std::string_view plain = plain_name(*type);
        !plain.empty() && plain != type->name)
      out_ = fmt::format("{}{}({})", out_.substr(0, before), type->name,
                         out_.substr(before));
  }

  // The type whose contents show_plain() shows for a subclass of it.
  static std::string_view plain_name(const Type& type) {
    switch (type.family()) {
      case Family::kInteger:
        return type.is_built_in("bool") ? "bool" : "int";
      case Family::kList:
        return "list";
      case Family::kTuple:
        return "tuple";
      case Family::kBytes:
        return "bytes";
      case Family::kText:
        return "str";
      case Family::kDict:
        return "dict";
      default:
        return "";
    }
  }

  bool show_plain(std::uint64_t object, const Type& type, int depth) {
    switch (type.family()) {
      case Family::kInteger:
        return show_integer(object, type.is_built_in("bool"));
      case Family::kList:
        return show_list(object, depth);
      case Family::kTuple:
        return show_tuple(object, depth);
      case Family::kBytes:
        return show_bytes(object);
      case Family::kText:
        return show_text(object);
      case Family::kDict:
        return show_dict(object, depth);
      case Family::kError:
        return show_error(object, type, depth);
      case Family::kType:
        out_ += fmt::format("<class '{}'>",
                            c_text(word(object + kTypeName).value_or(0)));
        return true;
      case Family::kOther:
        break;
    }
    if (type.is_built_in("float") || type.is_built_in("numpy.float64"))
      return show_float(object);
    if (type.is_built_in("set") || type.is_built_in("frozenset"))
      return show_set(object, type, depth);
    if (type.is_built_in("numpy.ndarray"))
      return show_array(object);
    return false;
  }

  bool show_integer(std::uint64_t object, bool boolean) {
    const auto size = word(object + kSizeOf);
    if (!size)
      return false;
    // Up to 3.11 the sign is that of the size, later two bits of it.
    const auto signed_size = static_cast<std::int64_t>(*size);
    const bool negative =
        layout_.tagged_integers ? (*size & 3) == 2 : signed_size < 0;
    const std::uint64_t digits = layout_.tagged_integers ? *size >> 3
                                 : negative              ? 0 - *size
                                                         : *size;
    constexpr std::uint64_t kBits = 30;
    constexpr std::uint64_t kMostDigits = 100;
    if (digits > kMostDigits) {
      out_ += fmt::format("<int of {} bits>", digits * kBits);
      return digits < UINT64_MAX / kBits;
    }
    // Two's complement, little-endian, as repr_integer() takes it.
    std::vector<std::uint32_t> parts(digits);
    if (!memory_.read(object + kDigits,
                      std::as_writable_bytes(std::span(parts))))
      return false;
    std::string bytes(digits * 4 + 1, '\0');
    for (std::uint64_t bit = 0; bit < digits * kBits; ++bit)
      if ((parts[bit / kBits] >> (bit % kBits) & 1) != 0)
        bytes[bit / 8] = static_cast<char>(bytes[bit / 8] | 1 << (bit % 8));
    if (boolean) {
      out_ += bytes[0] != 0 ? "True" : "False";
      return true;
    }
    out_ += (negative ? "-" : "") + repr_integer(bytes);
    return true;
  }

  bool show_float(std::uint64_t object) {
    const auto value = memory_.load<double>(object + kFirstField);
    out_ += value ? repr_float(*value) : "?";
    return value.has_value();
  }

  bool show_text(std::uint64_t object) {
    const auto length = word(object + kSizeOf);
    const auto text =
        read_python_text(memory_, layout_, object, kMostCharacters);
    if (!text || !length)
      return false;
    out_ += repr_string(*text) + (*length > kMostCharacters ? "..." : "");
    return true;
  }

  bool show_bytes(std::uint64_t object) {
    constexpr std::uint64_t kContents = 32;
    const auto length = word(object + kSizeOf);
    if (!length)
      return false;
    std::vector<std::byte> bytes(
        std::min<std::uint64_t>(*length, kMostCharacters));
    if (!bytes.empty() && !memory_.read(object + kContents, bytes))
      return false;
    out_ += repr_bytes(as_text(bytes)) + (*length > bytes.size() ? "..." : "");
    return true;
  }

  void show_items(std::uint64_t items, std::uint64_t count, int depth) {
    for (std::uint64_t i = 0; i < count; ++i) {
      out_ += i == 0 ? "" : ", ";
      if (i == kMostItems) {
        out_ += fmt::format("... {} more", count - i);
        return;
      }
      if (out_.size() >= kMostValueBytes) {
        out_ += "...";
        return;
      }
      show(word(items + 8 * i).value_or(0), depth + 1);
    }
  }

  bool show_list(std::uint64_t object, int depth) {
    const auto count = word(object + kSizeOf);
    const auto items = word(object + kListItems);
    if (!count || !items)
      return false;
    return show_sequence("[", "]", *items, *count, depth);
  }

  bool show_tuple(std::uint64_t object, int depth) {
    const auto count = word(object + kSizeOf);
    if (!count)
      return false;
    return show_sequence("(", *count == 1 ? ",)" : ")",
                         object + layout_.tuple_items, *count, depth);
  }

  bool show_sequence(std::string_view open, std::string_view close,
                     std::uint64_t items, std::uint64_t count, int depth) {
    out_ += open;
    if (depth == kDeepest && count > 0)
      out_ += "...";
    else
      show_items(items, count, depth);
    out_ += close;
    return true;
  }

  // PyDictKeysObject: a header, an index and then the entries in their order.
  bool show_dict(std::uint64_t object, int depth) {
    const auto used = word(object + kDictUsed);
    const auto keys = word(object + kDictKeys);
    if (!used || !keys)
      return false;
    if (*used == 0 || depth == kDeepest) {
      out_ += *used == 0 ? "{}" : "{...}";
      return true;
    }
    std::uint64_t filled = 0;
    std::uint64_t entries = 0;
    std::uint64_t entry_size = 24;  // hash, key, value
    std::uint64_t key_at = 8;
    if (layout_.small_dict_keys) {
      std::array<std::uint8_t, 3> sizes = {};
      if (!memory_.read(*keys + 8, std::as_writable_bytes(std::span(sizes))) ||
          sizes[1] > 40)
        return false;
      constexpr std::uint8_t kAnyKeys = 0;
      constexpr std::uint8_t kSharedKeys = 2;
      // The values are elsewhere; only an instance's __dict__ is made so.
      if (sizes[2] == kSharedKeys)
        return false;
      if (sizes[2] != kAnyKeys) {
        entry_size = 16;  // key, value
        key_at = 0;
      }
      filled = word(*keys + 24).value_or(0);
      entries = *keys + 32 + (std::uint64_t{1} << sizes[1]);
    } else {
      const std::uint64_t slots = word(*keys + 8).value_or(0);
      const std::uint64_t index_bytes = slots <= 0xff         ? 1
                                        : slots <= 0xffff     ? 2
                                        : slots <= 0xffffffff ? 4
                                                              : 8;
      filled = word(*keys + 32).value_or(0);
      entries = *keys + 40 + slots * index_bytes;
    }
    out_ += "{";
    std::uint64_t shown = 0;
    // Entries of deleted keys are empty; most others are not.
    constexpr std::uint64_t kMostEntries = 1000;
    for (std::uint64_t i = 0; i < std::min(filled, kMostEntries); ++i) {
      const std::uint64_t entry = entries + i * entry_size + key_at;
      const std::uint64_t value = word(entry + 8).value_or(0);
      if (value == 0)
        continue;
      out_ += shown == 0 ? "" : ", ";
      if (shown == kMostItems || out_.size() >= kMostValueBytes)
        break;
      show(word(entry).value_or(0), depth + 1);
      out_ += ": ";
      show(value, depth + 1);
      ++shown;
    }
    if (shown < *used)
      out_ += fmt::format("... {} more", *used - shown);
    out_ += "}";
    return true;
  }

  bool show_set(std::uint64_t object, const Type& type, int depth) {
    const auto used = word(object + kSetUsed);
    const auto mask = word(object + kSetMask);
    const auto table = word(object + kSetTable);
    if (!used || !mask || !table)
      return false;
    const bool frozen = type.name == "frozenset";
    if (*used == 0) {
      out_ += type.name + "()";
      return true;
    }
    out_ += frozen ? "frozenset({" : "{";
    std::uint64_t shown = 0;
    constexpr std::uint64_t kMostSlots = 1000;
    for (std::uint64_t i = 0;
         i < kMostSlots && i <= *mask && shown < kMostItems &&
         depth < kDeepest && out_.size() < kMostValueBytes;
         ++i) {
      const std::uint64_t item = word(*table + 16 * i).value_or(0);
      const std::optional<Type> item_type = type_of(item);
      if (!item_type || item_type->name == "<dummy key>")
        continue;
      out_ += shown++ == 0 ? "" : ", ";
      show(item, depth + 1);
    }
    if (shown < *used)
      out_ +=
          fmt::format("{}... {} more", shown == 0 ? "" : ", ", *used - shown);
    out_ += frozen ? "})" : "}";
    return true;
  }

  bool show_error(std::uint64_t object, const Type& type, int depth) {
    const auto arguments = word(object + kErrorArguments);
    const auto count = arguments ? word(*arguments + kSizeOf) : std::nullopt;
    if (!count)
      return false;
    out_ += type.name;
    return show_sequence("(", ")", *arguments + layout_.tuple_items, *count,
                         depth);
  }

  bool show_array(std::uint64_t object) {
    const auto dimensions =
        memory_.load<std::int32_t>(object + kArrayDimensions);
    const auto shape = word(object + kArrayShape);
    constexpr std::int32_t kMostDimensions = 64;
    if (!dimensions || !shape || *dimensions < 0 ||
        *dimensions > kMostDimensions)
      return false;
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(*dimensions));
    if (!sizes.empty() &&
        !memory_.read(*shape, std::as_writable_bytes(std::span(sizes))))
      return false;
    out_ += fmt::format("<numpy.ndarray [{}]>", fmt::join(sizes, ", "));
    return true;
  }

  const Memory& memory_;
  const PythonLayout& layout_;
  std::string out_;
};

}  // namespace

std::vector<LocalVariable> read_locals(const Memory& memory,
                                       const PythonLayout& layout,
                                       const RawFrame& frame) {
  std::vector<LocalVariable> locals;
  ValueText text(memory, layout);
  std::uint64_t slot = frame.frame + layout.frame.locals;
  for (const std::uint32_t offset : layout.code.local_names) {
    const auto names = offset == 0
                           ? std::nullopt
                           : memory.load<std::uint64_t>(frame.code + offset);
    const auto count =
        names ? memory.load<std::uint64_t>(*names + kSizeOf) : std::nullopt;
    if (!count)
      continue;
    for (std::uint64_t i = 0;
         i < std::min<std::uint64_t>(*count, kMostVariables); ++i, slot += 8) {
      const auto object = memory.load<std::uint64_t>(slot);
      const auto name_at =
          memory.load<std::uint64_t>(*names + layout.tuple_items + 8 * i);
      if (!object || !name_at)
        return locals;
      const auto name =
          read_python_text(memory, layout, *name_at, kMostCharacters);
      // ".0" is the iterator of a comprehension.
      if (*object == 0 || !name || name->starts_with('.'))
        continue;
      constexpr std::uint64_t kTag = 7;
      if (auto value =
              text.of_variable(layout.tagged_code ? *object & ~kTag : *object))
        locals.push_back({*name, *std::move(value)});
    }
  }
  return locals;
}

}  // namespace postflight
