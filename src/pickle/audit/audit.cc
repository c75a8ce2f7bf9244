#include "pickle/audit/audit.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "pickle/audit/effect.h"
#include "pickle/audit/scrutiny.h"
#include "pickle/parts.h"

namespace postflight {
namespace {

// Texts that name what is called are compared as far as they are shown.
constexpr std::size_t kShortName = 200;

bool is_text(const Value& value, std::string_view text) {
  return (value.is(Kind::kString) || value.is(Kind::kLegacyString)) &&
         value.text() == text;
}

// As torch and its packages write them; their readers resolve them to storages,
// or call the function in them with values of the pickle: a name is judged as
// any value is, and anything else may be any function.
bool is_torch_id(const Value& id) {
  if (!id.is(Kind::kTuple) || id.items().empty())
    return false;
  const auto items = id.items();
  if (is_text(items[0], "reduce_package"))
    return items.size() >= 3 && items[items.size() - 2].is(Kind::kGlobal);
  return is_text(items[0], "storage") || is_text(items[0], "module");
}

class Auditor {
 public:
  Auditor(const Machine& machine, const AuditOptions& options)
      : machine_(machine), judge_(options.is_script) {}

  Audit run() {
    judge_globals();
    judge_calls();
    Scrutiny scrutiny = scrutinize(machine_.seen());
    result_.doubts = std::move(scrutiny.doubts);
    // Ids are looked at, and values walked, only where that matters.
    if (has_rules_ || scrutiny.has_persistent_ids)
      walk();
    if (has_getters_)
      follow_getters();
    settle_rules();
    return std::move(result_);
  }

 private:
  struct Known {
    std::size_t place = 0;
    Judgement judgement;
  };

  // Long names are known by their addresses first: with a few bytes each they
  // can be put together, and called, a hundred thousand times.
  const Known& known(const Global& global) {
    if (global.module.size() + global.name.size() > kShortName) {
      const auto [same, is_new] =
          long_names_.try_emplace({global.module.data(), global.name.data()});
      if (is_new)
        same->second = known_by_name(global);
      return same->second;
    }
    return known_by_name(global);
  }

  const Known& known_by_name(const Global& global) {
    const Judgement judgement = judge_.judge_name(global);
    const auto [place, is_new] =
        known_.try_emplace({dotted_name(global), judgement.trust});
    if (is_new) {
      place->second = {result_.globals.size(), judgement};
      result_.globals.push_back({shown_name(global.module),
                                 shown_name(global.name), judgement.trust,
                                 std::string(judgement.reason)});
      has_rules_ = has_rules_ || judgement.rule != Rule::kNone;
      has_getters_ = has_getters_ || judgement.rule == Rule::kAttributeGetter;
    }
    return place->second;
  }

  void judge_globals() {
    for (const Global* const global : machine_.globals())
      ++result_.globals[known(*global).place].uses;
  }

  void judge_calls() {
    std::map<std::pair<const Global*, Making>, std::size_t> met;
    for (const Object* const object : machine_.objects()) {
      // The same name is mostly called the same way, again and again.
      const bool is_simple = object->callable.is(Kind::kGlobal) &&
                             object->making != Making::kTouched &&
                             object->state_count == 0 &&
                             object->more == nullptr;
      if (is_simple) {
        const Global& global = object->callable.global();
        const auto found = met.find({&global, object->making});
        if (found != met.end()) {
          ++result_.calls[found->second].uses;
          check_form(*object);
          continue;
        }
        const std::size_t place = place_of_call(*object);
        ++result_.calls[place].uses;
        if (known(global).judgement.rule == Rule::kNone)
          met.emplace(std::pair(&global, object->making), place);
      } else {
        ++result_.calls[place_of_call(*object)].uses;
      }
      check_form(*object);
    }
  }

  std::size_t place_of_call(const Object& object) {
    Effect effect = judge_.judge_call(object);
    const auto [place, is_new] = called_.try_emplace(
        {effect.callable, object.making, effect.trust}, result_.calls.size());
    if (is_new)
      result_.calls.push_back({std::move(effect.callable), object.making,
                               effect.trust, std::string(effect.reason), 0,
                               Value::object(&object)});
    return place->second;
  }

  void check_form(const Object& object) {
    if (object.making == Making::kTouched)
      return;
    if (!object.arguments.is(Kind::kTuple))
      doubt("arguments_not_tuple",
            "the arguments of a call are no tuple: CPython's reader in C "
            "refuses that, the one in Python does not");
    if (object.making == Making::kNewEx && !object.keywords().is(Kind::kDict))
      doubt("keywords_not_dict",
            "the keywords of a call are no dict: readers take that "
            "differently");
  }

  void doubt(std::string_view kind, std::string message) {
    if (doubted_.insert(std::string(kind)).second)
      later_doubts_.push_back(
          {Safety::kUnknown, std::string(kind), std::move(message), ""});
  }

  // Everything that Python would keep or hand to a call, and so not what is
  // only called. Values that were thrown away are not met.
  void walk() {
    if (const Value* const root = machine_.root())
      visit(*root);
    for (const Object* const object : machine_.objects())
      visit_parts(Value::object(object));
    while (!todo_.empty()) {
      const Value value = todo_.back();
      todo_.pop_back();
      visit_parts(value);
    }
  }

  void visit(const Value& value) {
    if (value.is(Kind::kGlobal))
      result_.globals[known(value.global()).place].as_value = true;
    else if (value.kind() >= Kind::kTuple)
      todo_.push_back(value);
  }

  void visit_parts(const Value& value) {
    const void* const identity = value.identity();
    if (identity == nullptr || !visited_.insert(identity).second)
      return;
    if (value.is(Kind::kPersistent) && !is_torch_id(value.persistent_id()))
      doubt("persistent_id",
            "a persistent id stands for what the reading program makes of it");
    const std::size_t count = part_count(value);
    for (std::size_t i = 0; i < count; ++i) {
      const Part part = part_at(value, i);
      // What is called is judged with the call.
      if (part.role == Role::kCallable && part.value.is(Kind::kGlobal))
        continue;
      visit(part.value);
    }
  }

  // An attrgetter reads any attribute for whoever calls it, and the classes
  // that are given one may. Only one that is kept as data is plain.
  void follow_getters() {
    std::unordered_set<const void*> reached;
    std::vector<Value> left;
    bool is_handed_on = false;
    const auto reach_parts = [&](const Value& value) {
      const std::size_t count = part_count(value);
      for (std::size_t i = 0; i < count; ++i)
        if (const Part part = part_at(value, i); part.role != Role::kCallable)
          left.push_back(part.value);
    };
    for (const Object* const object : machine_.objects())
      reach_parts(Value::object(object));
    while (!left.empty() && !is_handed_on) {
      const Value value = left.back();
      left.pop_back();
      is_handed_on = is_getter(value);
      const void* const identity = value.identity();
      if (value.kind() < Kind::kTuple || value.is(Kind::kObject) ||
          identity == nullptr || !reached.insert(identity).second)
        continue;
      reach_parts(value);
    }
    if (!is_handed_on)
      return;
    for (CallUse& call : result_.calls)
      if (call.trust < Trust::kUnknown && is_getter(call.first)) {
        call.trust = Trust::kUnknown;
        call.reason = "reads any attribute for whatever is given it";
      }
  }

  bool is_getter(const Value& value) const {
    return value.is(Kind::kObject) &&
           value.object().callable.is(Kind::kGlobal) &&
           judge_.judge_name(value.object().callable.global()).rule ==
               Rule::kAttributeGetter;
  }

  // A name whose calls were all looked into is as trusted as they are, unless
  // it is handed on.
  void settle_rules() {
    for (const auto& [name, known] : known_) {
      if (known.judgement.rule == Rule::kNone)
        continue;
      GlobalUse& use = result_.globals[known.place];
      if (use.as_value)
        continue;
      use.trust = Trust::kPlain;
      for (const CallUse& call : result_.calls)
        if (call.callable == name.first)
          use.trust = std::max(use.trust, call.trust);
      if (use.trust != known.judgement.trust)
        use.reason.clear();
    }
    for (Reason& reason : later_doubts_)
      result_.doubts.push_back(std::move(reason));
  }

  const Machine& machine_;
  EffectJudge judge_;
  Audit result_;
  std::map<std::pair<const void*, const void*>, Known> long_names_;
  std::map<std::pair<std::string, Trust>, Known> known_;
  std::map<std::tuple<std::string, Making, Trust>, std::size_t> called_;
  bool has_rules_ = false;
  bool has_getters_ = false;
  std::unordered_set<std::string> doubted_;
  std::vector<Reason> later_doubts_;
  std::vector<Value> todo_;
  std::unordered_set<const void*> visited_;
};

}  // namespace

Trust Audit::worst() const {
  Trust worst = Trust::kPlain;
  for (const GlobalUse& use : globals)
    worst = std::max(worst, use.trust);
  for (const CallUse& use : calls)
    worst = std::max(worst, use.trust);
  return worst;
}

SafetyVerdict Audit::verdict() const {
  SafetyVerdict verdict;
  const auto add = [&verdict](Trust trust, std::string_view kind,
                              std::string what, const std::string& reason) {
    if (trust <= Trust::kTorch)
      return;
    std::string message = "loading it would " + std::move(what);
    if (!reason.empty())
      message += ", which " + reason;
    verdict.add(
        {trust == Trust::kDangerous ? Safety::kDangerous : Safety::kRunsCode,
         std::string(kind), std::move(message), ""});
  };
  for (const CallUse& use : calls)
    add(use.trust, use.making == Making::kTouched ? "change" : "call",
        (use.making == Making::kTouched ? "change " : "call ") + use.callable,
        use.reason);
  for (const GlobalUse& use : globals)
    add(use.trust, "import", fmt::format("import {}.{}", use.module, use.name),
        use.reason);
  for (const Reason& doubt : doubts)
    verdict.add(doubt);
  return verdict;
}

Audit audit(const Machine& machine, const AuditOptions& options) {
  return Auditor(machine, options).run();
}

}  // namespace postflight
