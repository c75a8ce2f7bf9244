#pragma once

#include <span>
#include <string>
#include <string_view>

#include "pickle/audit/trust.h"
#include "pickle/numpy_dtype.h"
#include "pickle/object.h"

namespace postflight {

// What one call of a pickle would do, by what is called and with what.
struct Effect {
  std::string callable;  // a dotted name, or what kind of value it is
  Trust trust = Trust::kUnknown;
  std::string_view reason;  // what it does; may be empty
};

class EffectJudge {
 public:
  explicit EffectJudge(bool is_script) : is_script_(is_script) {}

  Judgement judge_name(const Global& global) const;
  Effect judge_call(const Object& object) const;

 private:
  struct Outcome {
    Trust trust = Trust::kUnknown;
    std::string_view reason;
    bool shared = false;  // may return what others have, too
  };
  Outcome outcome_of(const Object& object, int depth) const;
  static Outcome made_by(Outcome outcome);
  Outcome apply(const Judgement& known, const Object& object, int depth) const;
  Outcome when_called(const Value& callable, int depth) const;
  Outcome attribute(const Object& object) const;
  Outcome makes(std::span<const Value> classes) const;
  Outcome scalar(const Object& object) const;

  bool is_script_;
  mutable NumpyDtypes dtypes_;
};

// A name as it is shown; a hostile pickle can make many long ones out of few
// bytes.
std::string shown_name(std::string_view name);
std::string dotted_name(const Global& global);

}  // namespace postflight
