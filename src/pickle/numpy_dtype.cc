#include "pickle/numpy_dtype.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace postflight {
namespace {

constexpr int kDeepestDtype = 16;
constexpr std::uint64_t kLargestItem = std::uint64_t{1} << 31;

// Bits of a dtype's flags.
constexpr std::int64_t kObjectBits = 0x1b;  // counted, as a list, set to None
constexpr std::int64_t kOnlyOfObjects = 0x27;

bool is_word(const Value& value) {
  return value.is(Kind::kString) || value.is(Kind::kLegacyString);
}

std::optional<std::uint64_t> natural(const Value& value) {
  if (!value.is(Kind::kInteger) || value.integer() < 0)
    return std::nullopt;
  return static_cast<std::uint64_t>(value.integer());
}

bool is_record(const Global& global) {
  return (global.module == "numpy" || global.module == "numpy.core.records" ||
          global.module == "numpy._core.records" ||
          global.module == "numpy.rec") &&
         (global.name == "record" || global.name == "void");
}

struct Spelled {
  char kind = 0;
  std::uint64_t size = 0;
};

// As NumPy writes a type: a letter and the size of an element, or for U the
// number of its characters.
std::optional<Spelled> spelled(std::string_view text) {
  if (!text.empty() && std::string_view("<>|=").find(text[0]) != text.npos)
    text.remove_prefix(1);
  if (text.empty() ||
      std::string_view("?bBhHiIlLqQefdgFDGOSaUVMmcu").find(text[0]) ==
          text.npos)
    return std::nullopt;
  Spelled made{.kind = text[0]};
  if (text.size() == 1 && text[0] == 'O')
    return Spelled{'O', sizeof(void*)};
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data() + 1, end, made.size);
  constexpr std::uint64_t kBytesOfCharacter = 4;
  if (error != std::errc() || at != end || made.size > kLargestItem)
    return std::nullopt;
  if (made.kind == 'U')
    made.size *= kBytesOfCharacter;
  return made;
}

bool is_alignment(const Value& value) {
  constexpr std::int64_t kMost = 64;
  if (!value.is(Kind::kInteger))
    return false;
  const std::int64_t bytes = value.integer();
  return bytes == -1 ||
         (bytes > 0 && bytes <= kMost && (bytes & (bytes - 1)) == 0);
}

struct Field {
  Value dtype;
  std::uint64_t offset = 0;
};

std::optional<Field> field_in(const Value& value) {
  if (!value.is(Kind::kTuple) || value.items().size() < 2 ||
      value.items().size() > 3)
    return std::nullopt;
  const auto offset = natural(value.items()[1]);
  if (!offset || !is_numpy_dtype(value.items()[0]))
    return std::nullopt;
  return Field{value.items()[0], *offset};
}

bool agree(std::int64_t flags, bool objects) {
  return objects ? (flags & kObjectBits) == kObjectBits
                 : (flags & kOnlyOfObjects) == 0;
}

}  // namespace

bool is_numpy_dtype(const Value& value) {
  if (!value.is(Kind::kObject))
    return false;
  const Object& object = value.object();
  return object.callable.is(Kind::kGlobal) &&
         object.callable.global().module == "numpy" &&
         object.callable.global().name == "dtype" &&
         (object.making == Making::kReduce || object.making == Making::kNew);
}

std::optional<NumpyElement> NumpyDtypes::of(const Object& call, int depth) {
  const auto [place, is_new] = known_.try_emplace(&call);
  if (!is_new)
    return place->second;
  if (depth > kDeepestDtype)
    return std::nullopt;
  const std::optional<NumpyElement> element = judge(call, depth);
  known_[&call] = element;
  return element;
}

std::optional<NumpyElement> NumpyDtypes::judge(const Object& call, int depth) {
  const auto arguments = call.arguments.is(Kind::kTuple)
                             ? call.arguments.items()
                             : std::span<const Value>();
  if (!call.items().empty() || !call.pairs().empty() || arguments.empty() ||
      call.state_count > 1)
    return std::nullopt;
  NumpyElement element;
  char kind = 0;
  if (is_word(arguments[0])) {
    if (const auto made = spelled(arguments[0].text())) {
      kind = made->kind;
      element = {made->size, kind == 'O', kind != 'V', true};
    }
  } else if (arguments[0].is(Kind::kGlobal) &&
             is_record(arguments[0].global())) {
    kind = 'V';
  }
  // Without a state NumPy makes all of it itself, and checks it.
  if (call.state_count == 0)
    return element;
  if (kind == 0 || !call.state.is(Kind::kTuple))
    return std::nullopt;
  return with_state(element, kind, call.state.items(), depth);
}

// (version, byte order, (base, shape), names, fields, size, alignment, flags),
// and from version 4 on, for dates, the unit.
std::optional<NumpyElement> NumpyDtypes::with_state(
    NumpyElement element, char kind, std::span<const Value> state, int depth) {
  constexpr std::size_t kFewest = 8;
  if (state.size() < kFewest || state.size() > kFewest + 1 ||
      !state[5].is(Kind::kInteger) || !is_alignment(state[6]) ||
      !state[7].is(Kind::kInteger))
    return std::nullopt;
  const Value& described = state[2];
  const Value& names = state[3];
  const Value& fields = state[4];
  const std::int64_t size = state[5].integer();
  if (size < -1 || size > static_cast<std::int64_t>(kLargestItem))
    return std::nullopt;
  const bool is_sized =
      kind == 'V' || kind == 'S' || kind == 'a' || kind == 'U';
  if (is_sized && size >= 0)
    element.size = static_cast<std::uint64_t>(size);
  if (is_sized ? size < 0 || (kind == 'U' && size % 4 != 0)
               : size >= 0 && static_cast<std::uint64_t>(size) != element.size)
    return std::nullopt;
  element.known = true;
  const bool is_structure = !names.is(Kind::kNone) || !fields.is(Kind::kNone);
  if (kind != 'V' && (is_structure || !described.is(Kind::kNone)))
    return std::nullopt;
  if (!described.is(Kind::kNone)) {
    const auto inner = subarray(described, depth);
    if (!inner || inner->size != element.size || is_structure)
      return std::nullopt;
    element.objects = inner->objects;
  } else if (is_structure) {
    const auto objects =
        fields_hold_objects(names, fields, element.size, depth);
    if (!objects)
      return std::nullopt;
    element.objects = *objects;
  }
  if (!agree(state[7].integer(), element.objects))
    return std::nullopt;
  return element;
}

std::optional<NumpyElement> NumpyDtypes::subarray(const Value& described,
                                                  int depth) {
  if (!described.is(Kind::kTuple) || described.items().size() != 2 ||
      !is_numpy_dtype(described.items()[0]))
    return std::nullopt;
  const auto base = of(described.items()[0].object(), depth + 1);
  if (!base || !base->known)
    return std::nullopt;
  const Value& shape = described.items()[1];
  const auto dimensions =
      shape.is(Kind::kTuple) ? shape.items() : std::span(&shape, 1);
  NumpyElement whole = *base;
  for (const Value& dimension : dimensions) {
    const auto count = natural(dimension);
    const auto product =
        count ? checked_multiply(whole.size, *count) : std::nullopt;
    if (!product || *product > kLargestItem)
      return std::nullopt;
    whole.size = *product;
  }
  return whole;
}

// Fields lie within the element, and none that holds objects overlaps another.
std::optional<bool> NumpyDtypes::fields_hold_objects(const Value& names,
                                                     const Value& fields,
                                                     std::uint64_t size,
                                                     int depth) {
  struct Placed {
    std::uint64_t begin;
    std::uint64_t end;
    const Object* dtype;
    bool operator==(const Placed&) const = default;
  };
  if (!names.is(Kind::kTuple) || !fields.is(Kind::kDict) ||
      !std::ranges::all_of(names.items(), is_word))
    return std::nullopt;
  bool objects = false;
  std::vector<Placed> placed;
  for (const Pair& pair : fields.pairs()) {
    const auto field = field_in(pair.value);
    const auto inner =
        field ? of(field->dtype.object(), depth + 1) : std::nullopt;
    if (!is_word(pair.key) || !inner || !inner->known || inner->size > size ||
        field->offset > size - inner->size)
      return std::nullopt;
    objects = objects || inner->objects;
    placed.push_back(
        {field->offset, field->offset + inner->size, &field->dtype.object()});
  }
  if (!objects)
    return false;
  // A title is a second key for the same field.
  std::ranges::sort(placed, {}, [](const Placed& field) {
    return std::tuple(field.begin, field.end, field.dtype);
  });
  placed.erase(std::unique(placed.begin(), placed.end()), placed.end());
  const auto overlap = std::ranges::adjacent_find(
      placed, [](const Placed& a, const Placed& b) { return a.end > b.begin; });
  return overlap == placed.end() ? std::optional(true) : std::nullopt;
}

}  // namespace postflight
