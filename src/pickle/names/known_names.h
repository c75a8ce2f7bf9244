#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace postflight {

// What importing and calling a name would mean. Python's pickle imports every
// name it meets and calls what the stream tells it to, so anything that is
// neither plain data nor one of torch's own rebuilding functions is code of
// somebody's choice.
enum class Trust : std::uint8_t {
  kPlain,      // builds plain values: containers, dates, paths, arrays
  kTorch,      // rebuilds tensors and torch's checkpoint records
  kUnknown,    // a class or function we know nothing about
  kDangerous,  // known to run programs, evaluate source or touch files
};

// How a call is judged whose effect depends on its arguments. Such a name is
// trusted in calls that were looked into, and nowhere else: as a value, it may
// be called later with anything.
enum class Rule : std::uint8_t {
  kNone,
  kLoadsBytes,  // loads a pickle from bytes, which is judged on its own
  kCallsFirst,  // calls its first argument
  kCallsSecond,
  kPartial,          // functools.partial: keeps its first argument to call it
  kAttribute,        // getattr: as the attribute's own dotted name
  kAttributeGetter,  // operator.attrgetter: reads attributes when called
  kType,             // type(None), but not type(name, bases, body)
  kIterator,         // iter(x), but not iter(callable, end)
  kReadsArray,       // joblib reads an array's elements in place of it
  kRebuilds,         // calls torch's rebuilding function, its first argument
  kAttributes,       // sets attributes of its own, named by its argument
  kArray,            // makes an empty NumPy array, which gets its state once
  kMaskedArray,      // likewise, of two classes
  kStateless,        // a plain value, if it is not given a state
  kMakesFirst,       // makes an instance of its first argument, a class
  kMakesFirstTwo,    // likewise, by its second, a base of it
  kBare,             // a plain value if made without calling its __init__
  kNamesCodec,       // encodes or decodes by the codec named
  kDtype,            // numpy.dtype, whose state NumPy believes
  kScalar,           // a NumPy scalar from a dtype and bytes
};

// The table of names, by module. A name is plain or torch's only if no call of
// it, with arguments made of such names and of data, can run code, open a file
// or import by name; where that depends on the arguments the row has a rule.
// Names are public facts about CPython, numpy, torch and other packages.
struct KnownName {
  Trust trust = Trust::kUnknown;
  Rule rule = Rule::kNone;
  std::string_view effect;  // what a call does, for kDangerous
  // A call may return what others have, too: to change that changes more.
  bool shared = false;
  // A class whose members are attributes with names in capitals.
  bool is_enumeration = false;
};

struct NameRow {
  std::string_view module;
  std::string_view
      names;  // separated by spaces; kEveryName: in submodules, too
  KnownName known;
};
constexpr std::string_view kEveryName = "*";

// The rows, one file for each.
std::span<const NameRow> standard_names();   // Python's library
std::span<const NameRow> standard_types();   // more of its plain types
std::span<const NameRow> dangerous_names();  // what else is in it
std::span<const NameRow> torch_names();
std::span<const NameRow> package_names();  // numpy and others

// The row for exactly this name, else the row for everything in a module or a
// package; nullptr if there is none.
const KnownName* known_name(std::string_view module, std::string_view name);

// Whether `name` is one of `words`, which are separated by spaces.
bool has_word(std::string_view words, std::string_view name);

// For the tables.
namespace known {

inline constexpr KnownName kPlain{Trust::kPlain, Rule::kNone, {}};
// Returns something that is not new: one of its arguments, a class, or a value
// that the whole process shares.
inline constexpr KnownName kPlainShared{Trust::kPlain, Rule::kNone, {}, true};
inline constexpr KnownName kEnumeration{
    Trust::kPlain, Rule::kNone, {}, true, true};
inline constexpr KnownName kTorch{Trust::kTorch, Rule::kNone, {}};

inline constexpr KnownName kUnknown{};

constexpr KnownName does(std::string_view effect, Rule rule = Rule::kNone) {
  return {Trust::kDangerous, rule, effect};
}
constexpr KnownName depends(Rule rule) {
  return {Trust::kUnknown, rule, {}};
}

inline constexpr KnownName kRunsPrograms = does("runs programs");
inline constexpr KnownName kEvaluates = does("evaluates Python source");
inline constexpr KnownName kTouchesFiles =
    does("reads, writes or deletes files");
inline constexpr KnownName kNetwork = does("talks to the network");
inline constexpr KnownName kReaches = does("reaches any function by its name");
inline constexpr KnownName kCalls = does("calls the function that it is given");
inline constexpr KnownName kRegisters =
    does("registers functions that are called later");
inline constexpr KnownName kLoadsPickles = does("loads another pickle");
inline constexpr KnownName kNativeCode = does("runs native code");
inline constexpr KnownName kProcess =
    does("changes or ends the running process");

}  // namespace known

}  // namespace postflight
