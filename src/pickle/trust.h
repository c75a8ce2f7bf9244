#pragma once

#include <cstdint>
#include <string_view>

#include "pickle/object.h"

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

std::string_view trust_name(Trust trust);

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
  kType,             // type(x), but not type(name, bases, body)
  kIterator,         // iter(x), but not iter(callable, end)
  kRebuilds,         // calls torch's rebuilding function, its first argument
};

struct Judgement {
  Trust trust = Trust::kUnknown;
  std::string_view reason;  // what it does, for kDangerous; else empty
  Rule rule = Rule::kNone;
  bool shared = false;  // as KnownName's
};

// The judgement on a name whatever it is called with.
Judgement judge(const Global& global);

}  // namespace postflight
