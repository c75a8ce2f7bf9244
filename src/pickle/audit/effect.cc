#include "pickle/audit/effect.h"

#include <algorithm>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "base/ascii.h"

namespace postflight {
namespace {

constexpr std::size_t kLongestName = 200;  // longer than anybody ever gave

constexpr std::string_view kReachesAny = "reaches any function by its name";
constexpr std::string_view kChangesShared =
    "is then changed for the whole process";
constexpr std::string_view kReplacesMethod =
    "replaces a method that is called later";

constexpr std::string_view kAnyClass =
    "makes an object of whatever class it is given";
constexpr std::string_view kOddDtype =
    "has a state that NumPy never writes and would believe";

// numpy.ndarray(shape, dtype, buffer, offset) takes bytes for addresses of
// objects, and reads before them.
constexpr std::string_view kOverBytes = "is an array over memory of its choice";
constexpr std::size_t kBeforeBuffer = 2;

// Calls that keep a call that keeps a call ….
constexpr int kDeepest = 8;

std::span<const Value> arguments_of(const Object& object) {
  return object.arguments.is(Kind::kTuple) ? object.arguments.items()
                                           : std::span<const Value>();
}

std::optional<std::string_view> text_in(const Value& value) {
  if (value.is(Kind::kString) || value.is(Kind::kLegacyString))
    return value.text();
  return std::nullopt;
}

// Codecs between text and bytes; others are looked up, and imported, by name.
bool is_usual_codec(std::string_view name) {
  constexpr std::string_view kUsual =
      "latin1 latin-1 latin_1 iso-8859-1 iso8859-1 ascii us-ascii utf-8 utf8 "
      "utf_8 utf-16 utf-16-le utf-16-be utf-32 utf-32-le utf-32-be cp1252 hex "
      "base64 raw_unicode_escape raw-unicode-escape unicode_escape "
      "unicode-escape";
  return !name.empty() && has_word(kUsual, lowered(name));
}

bool is_private(std::string_view dotted) {
  return dotted.starts_with('_') || dotted.find("._") != dotted.npos;
}

// Names as members of enumerations have them, and methods do not: TLSv1_2.
bool is_constant_name(std::string_view name) {
  bool is_constant = !name.empty() && name[0] >= 'A' && name[0] <= 'Z';
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool is_version =
        name[i] == 'v' && i + 1 < name.size() && is_digit(name[i + 1]);
    is_constant =
        is_constant && ((name[i] >= 'A' && name[i] <= 'Z') ||
                        is_digit(name[i]) || name[i] == '_' || is_version);
  }
  return is_constant;
}

bool is_enumeration(const Global& global) {
  const KnownName* const known = known_name(global.module, global.name);
  return known != nullptr && known->is_enumeration;
}

// getattr(name, 'attribute') as one dotted name, which is how picklers before
// protocol 4 write it.
struct Attribute {
  Global owner;
  std::string name;  // dotted
};

std::optional<Attribute> attribute_in(const Value& value) {
  if (!value.is(Kind::kObject))
    return std::nullopt;
  const Object& object = value.object();
  const auto arguments = arguments_of(object);
  if (object.making != Making::kReduce || !object.callable.is(Kind::kGlobal) ||
      object.callable.global().name != "getattr" || arguments.size() != 2 ||
      !arguments[0].is(Kind::kGlobal) || !text_in(arguments[1]))
    return std::nullopt;
  const Global& getattr = object.callable.global();
  if (getattr.module != "builtins" && getattr.module != "__builtin__")
    return std::nullopt;
  const Global& owner = arguments[0].global();
  return Attribute{owner,
                   fmt::format("{}.{}", owner.name, *text_in(arguments[1]))};
}

// What there is only one of, and type() is used for.
bool is_lone_value(const Value& value) {
  if (!value.is(Kind::kGlobal))
    return value.is(Kind::kNone);
  const Global& global = value.global();
  return (global.module == "builtins" || global.module == "__builtin__") &&
         (global.name == "Ellipsis" || global.name == "NotImplemented");
}

// What pickle itself, or the reading program, calls by these names.
bool is_method_name(std::string_view name) {
  return name == "append" || name == "extend" || name == "add";
}

// Python and NumPy look some names with underscores up in the object itself,
// such as __setstate__ and __array_interface__, an address.
bool is_special_name(std::string_view name) {
  return name.starts_with("__") && name.ends_with("__");
}

bool replaces_method(std::span<const Pair> pairs) {
  return std::ranges::any_of(pairs, [](const Pair& pair) {
    const auto name = text_in(pair.key);
    return name &&
           (is_special_name(*name) ||
            (pair.value.kind() >= Kind::kGlobal && is_method_name(*name)));
  });
}

// A mapping whose keys come from a call are not looked into.
bool is_made_mapping(const Value& value) {
  constexpr std::string_view kMappings =
      "dict OrderedDict defaultdict Counter UserDict ChainMap SimpleCookie "
      "Morsel MappingProxyType";
  if (!value.is(Kind::kObject))
    return false;
  const Object& object = value.object();
  return !object.callable.is(Kind::kGlobal) ||
         (has_word(kMappings, object.callable.global().name) &&
          (!object.arguments.is(Kind::kTuple) ||
           !object.arguments.items().empty()));
}

std::span<const Pair> pairs_of(const Value& value) {
  if (value.is(Kind::kDict))
    return value.pairs();
  if (value.is(Kind::kObject))
    return value.object().pairs();
  return {};
}

// A state is a dict of attributes, or one and another for slots.
bool replaces_method(const Value& state) {
  const auto replaces = [](const Value& part) {
    return replaces_method(pairs_of(part)) || is_made_mapping(part);
  };
  return state.is(Kind::kTuple) ? std::ranges::any_of(state.items(), replaces)
                                : replaces(state);
}

// A NumPy array is made empty, and given its state once; another time the
// memory that something may still refer to would be freed.
bool is_made_empty(const Object& object, const Value& shape) {
  return object.state_count <= 1 && shape.is(Kind::kTuple) &&
         shape.items().size() == 1 && shape.items()[0].is(Kind::kInteger) &&
         shape.items()[0].integer() == 0;
}

bool is_changed(const Object& object) {
  return object.state_count != 0 || !object.items().empty() ||
         !object.pairs().empty();
}

}  // namespace

std::string shown_name(std::string_view name) {
  if (name.size() <= kLongestName)
    return std::string(name);
  return fmt::format("{}… ({} bytes)", name.substr(0, kLongestName),
                     name.size());
}

std::string dotted_name(const Global& global) {
  return fmt::format("{}.{}", shown_name(global.module),
                     shown_name(global.name));
}

Judgement EffectJudge::judge_name(const Global& global) const {
  // Types of a TorchScript archive: torch's C++ reader takes them from the
  // archive itself. Python would import a module of that name.
  if (is_script_ &&
      (global.module == "__torch__" || global.module.starts_with("__torch__.")))
    return {Trust::kTorch, {}};
  return judge(global);
}

Effect EffectJudge::judge_call(const Object& object) const {
  const Outcome outcome = outcome_of(object, 0);
  Effect effect{"a plain value", outcome.trust, outcome.reason};
  switch (object.callable.kind()) {
    case Kind::kGlobal:
      effect.callable = dotted_name(object.callable.global());
      break;
    case Kind::kExtension:
      effect.callable = fmt::format("extension {}", object.callable.integer());
      break;
    case Kind::kObject:
      effect.callable = "the result of a call";
      if (const auto attribute = attribute_in(object.callable))
        effect.callable =
            dotted_name({attribute->owner.module, attribute->name});
      break;
    case Kind::kPersistent:
      effect.callable = "a persistent object";
      break;
    default:
      break;
  }
  return effect;
}

EffectJudge::Outcome EffectJudge::outcome_of(const Object& object,
                                             int depth) const {
  Outcome outcome;
  const Value& callable = object.callable;
  if (object.making == Making::kTouched) {
    if (callable.is(Kind::kGlobal) && is_changed(object))
      return {Trust::kDangerous, kChangesShared};
    return outcome;
  }
  if (callable.is(Kind::kGlobal)) {
    const Judgement known = judge_name(callable.global());
    outcome = known.rule == Rule::kNone
                  ? Outcome{known.trust, known.reason, known.shared}
                  : apply(known, object, depth);
  } else if (const auto attribute = attribute_in(callable)) {
    const Judgement known =
        judge_name({attribute->owner.module, attribute->name});
    outcome = {known.trust, known.reason, true};
    if (known.rule != Rule::kNone)
      outcome.trust = std::max(known.trust, Trust::kUnknown);
  }
  if (outcome.trust > Trust::kTorch)
    return outcome;
  if (outcome.shared && is_changed(object))
    return {Trust::kDangerous, kChangesShared};
  const bool has_state_argument =
      callable.is(Kind::kGlobal) &&
      callable.global().name.ends_with("_with_state") &&
      !arguments_of(object).empty();
  if (std::ranges::any_of(
          object.states(),
          [](const Value& state) { return replaces_method(state); }) ||
      (has_state_argument && replaces_method(arguments_of(object).back())))
    return {Trust::kUnknown, kReplacesMethod};
  return outcome;
}

// What it means that somebody will call `callable`, with anything.
EffectJudge::Outcome EffectJudge::when_called(const Value& callable,
                                              int depth) const {
  if (callable.is(Kind::kNone))
    return {Trust::kPlain, {}};
  if (callable.is(Kind::kGlobal)) {
    const Judgement known = judge_name(callable.global());
    return {known.rule == Rule::kNone ? known.trust
                                      : std::max(known.trust, Trust::kUnknown),
            known.reason, true};
  }
  if (callable.is(Kind::kObject) && depth < kDeepest) {
    const Object& object = callable.object();
    if (object.callable.is(Kind::kGlobal) &&
        judge_name(object.callable.global()).rule == Rule::kPartial)
      return outcome_of(object, depth + 1);
  }
  return {};
}

EffectJudge::Outcome EffectJudge::made_by(Outcome outcome) {
  outcome.shared = false;
  return outcome;
}

EffectJudge::Outcome EffectJudge::apply(const Judgement& known,
                                        const Object& object, int depth) const {
  const auto arguments = arguments_of(object);
  const Outcome worst = {std::max(known.trust, Trust::kUnknown), known.reason,
                         true};
  if (!object.arguments.is(Kind::kTuple) || object.making == Making::kNewEx)
    return worst;
  switch (known.rule) {
    case Rule::kCallsFirst: {
      if (arguments.empty())
        return worst;
      Outcome outcome = when_called(arguments[0], depth);
      outcome.shared = known.shared;
      return outcome;
    }
    // It makes something new of what the call returns.
    case Rule::kCallsSecond:
      return arguments.size() < 2 ? Outcome{Trust::kPlain, {}}
                                  : made_by(when_called(arguments[1], depth));
    case Rule::kRebuilds: {
      if (arguments.empty() || !arguments[0].is(Kind::kGlobal))
        return {};
      if (replaces_method(arguments.back()))
        return {Trust::kUnknown, kReplacesMethod};
      const Judgement called = judge_name(arguments[0].global());
      if (called.trust == Trust::kDangerous)
        return {called.trust, called.reason};
      return {called.trust == Trust::kTorch && called.rule == Rule::kNone &&
                      arguments[0].global().name.starts_with("_rebuild_")
                  ? Trust::kTorch
                  : Trust::kUnknown,
              {}};
    }
    case Rule::kPartial: {
      if (arguments.empty())
        return worst;
      Outcome outcome = made_by(when_called(arguments[0], depth));
      for (const Value& state : object.states()) {
        const bool known_state =
            state.is(Kind::kTuple) && !state.items().empty();
        const Outcome next =
            known_state ? when_called(state.items()[0], depth) : Outcome();
        if (next.trust > outcome.trust)
          outcome = {next.trust, next.reason};
      }
      return outcome;
    }
    case Rule::kAttribute:
      return attribute(object);
    case Rule::kAttributeGetter: {
      const bool harmless =
          std::ranges::all_of(arguments, [](const Value& name) {
            return text_in(name) && !is_private(*text_in(name));
          });
      return harmless && !arguments.empty() ? Outcome{Trust::kPlain, {}}
                                            : worst;
    }
    case Rule::kType:
      return {arguments.size() == 1 && is_lone_value(arguments[0])
                  ? Trust::kPlain
                  : Trust::kUnknown,
              {},
              true};
    case Rule::kMakesFirst:
      if (arguments.size() > 1 + kBeforeBuffer &&
          arguments[0].is(Kind::kGlobal) &&
          judge_name(arguments[0].global()).rule == Rule::kStateless)
        return {Trust::kUnknown, kOverBytes};
      return arguments.empty() ? worst : makes(arguments.first(1));
    case Rule::kMakesFirstTwo:
      return arguments.size() < 2 ? worst : makes(arguments.first(2));
    case Rule::kArray:
    case Rule::kMaskedArray: {
      const std::size_t classes = known.rule == Rule::kArray ? 1 : 2;
      return arguments.size() <= classes ||
                     !is_made_empty(object, arguments[classes])
                 ? worst
                 : makes(arguments.first(classes));
    }
    case Rule::kStateless:
      return object.state_count == 0 && arguments.size() <= kBeforeBuffer
                 ? Outcome{Trust::kPlain, {}}
                 : Outcome{Trust::kUnknown, kOverBytes};
    case Rule::kAttributes:
      return std::ranges::any_of(arguments,
                                 [](const Value& attributes) {
                                   return replaces_method(attributes);
                                 })
                 ? Outcome{Trust::kUnknown, kReplacesMethod}
                 : Outcome{Trust::kPlain, {}};
    case Rule::kBare:
      return arguments.empty()
                 ? Outcome{std::min(known.trust, Trust::kTorch), {}}
                 : worst;
    case Rule::kNamesCodec: {
      const auto codec =
          arguments.size() > 1 ? text_in(arguments[1]) : std::optional("utf-8");
      return codec && is_usual_codec(*codec)
                 ? Outcome{Trust::kPlain, {}}
                 : Outcome{Trust::kUnknown, "looks a codec up by its name"};
    }
    case Rule::kDtype:
      return dtypes_.element(object) ? Outcome{Trust::kPlain, {}}
                                     : Outcome{Trust::kUnknown, kOddDtype};
    case Rule::kScalar:
      return scalar(object);
    case Rule::kIterator:
      return arguments.size() == 1  ? Outcome{Trust::kPlain, {}}
             : arguments.size() > 1 ? when_called(arguments[0], depth)
                                    : worst;
    default:
      return worst;
  }
}

// An object of a class that may be made in any way.
EffectJudge::Outcome EffectJudge::makes(std::span<const Value> classes) const {
  Outcome outcome{Trust::kPlain, {}};
  for (const Value& made : classes) {
    if (!made.is(Kind::kGlobal))
      return {Trust::kUnknown, kAnyClass};
    const Judgement known = judge_name(made.global());
    const Trust trust =
        known.rule == Rule::kNone || known.rule == Rule::kStateless ||
                known.rule == Rule::kBare || known.rule == Rule::kAttributes
            ? known.trust
            : std::max(known.trust, Trust::kUnknown);
    if (trust > outcome.trust)
      outcome = {trust, known.reason};
  }
  return outcome;
}

// A structure that holds objects is made of an array, never of bytes.
EffectJudge::Outcome EffectJudge::scalar(const Object& object) const {
  const auto arguments = arguments_of(object);
  const auto element = !arguments.empty() && is_numpy_dtype(arguments[0])
                           ? dtypes_.element(arguments[0].object())
                           : std::nullopt;
  const bool of_array =
      arguments.size() == 2 && arguments[1].is(Kind::kObject) &&
      arguments[1].object().callable.is(Kind::kGlobal) &&
      arguments[1].object().callable.global().name == "_reconstruct";
  if (!element || !element->known ||
      (element->objects && !element->is_plain && !of_array))
    return {Trust::kUnknown, kOddDtype, true};
  return {Trust::kPlain, {}, true};
}

// getattr(X, 'name'): a member of an enumeration, or whatever the dotted name
// X.name is.
EffectJudge::Outcome EffectJudge::attribute(const Object& object) const {
  const auto arguments = arguments_of(object);
  const std::optional<std::string_view> name =
      arguments.size() >= 2 ? text_in(arguments[1]) : std::nullopt;
  if (!name || name->starts_with("__"))
    return {Trust::kDangerous, kReachesAny, true};
  if (!arguments[0].is(Kind::kGlobal))
    return {Trust::kUnknown, {}, true};
  const Global& owner = arguments[0].global();
  if (is_enumeration(owner) &&
      (is_constant_name(*name) ||
       (owner.name == "SafeUUID" && has_word("safe unsafe unknown", *name))))
    return {Trust::kPlain, {}, true};
  const std::string dotted = fmt::format("{}.{}", owner.name, *name);
  const Judgement known = judge_name({owner.module, dotted});
  return {known.rule == Rule::kNone ? known.trust
                                    : std::max(known.trust, Trust::kUnknown),
          known.reason, true};
}

}  // namespace postflight
