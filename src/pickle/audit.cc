#include "pickle/audit.h"

#include <algorithm>
#include <map>

namespace postflight {
namespace {

std::string dotted(const Global& global) {
  return fmt::format("{}.{}", global.module, global.name);
}

struct Callable {
  std::string name;
  Judgement judgement;
};

// What is called is almost always a name. Anything else is a value that a call
// before returned, which nobody can know without making that call, or a code
// of Python's extension registry, which is up to the reading process.
Callable describe(const Value& callable) {
  switch (callable.kind()) {
    case Kind::kGlobal:
      return {dotted(callable.global()), judge(callable.global())};
    case Kind::kExtension:
      return {fmt::format("extension {}", callable.integer()), {}};
    case Kind::kObject:
      return {"the result of a call", {}};
    case Kind::kPersistent:
      return {"a persistent object", {}};
    default:
      return {"a plain value", {}};
  }
}

}  // namespace

Trust Audit::worst() const {
  Trust worst = Trust::kPlain;
  for (const GlobalUse& use : globals)
    worst = std::max(worst, use.trust);
  for (const CallUse& use : calls)
    worst = std::max(worst, use.trust);
  return worst;
}

Audit audit(const Machine& machine) {
  Audit result;
  std::map<std::string, std::size_t> known;
  for (const Global* const global : machine.globals()) {
    const auto [place, is_new] =
        known.try_emplace(dotted(*global), result.globals.size());
    if (is_new) {
      const Judgement judgement = judge(*global);
      result.globals.push_back({std::string(global->module),
                                std::string(global->name), judgement.trust,
                                std::string(judgement.reason)});
    }
    ++result.globals[place->second].uses;
  }

  // By address first: a name of any length can be called with two bytes.
  std::map<std::pair<const void*, Making>, std::size_t> met;
  std::map<std::pair<std::string, Making>, std::size_t> called;
  for (const Object* const object : machine.objects()) {
    const auto [same, is_new] =
        met.try_emplace({object->callable.identity(), object->making});
    if (is_new || object->callable.identity() == nullptr) {
      Callable callable = describe(object->callable);
      const auto [place, is_first] = called.try_emplace(
          {callable.name, object->making}, result.calls.size());
      if (is_first)
        result.calls.push_back(
            {std::move(callable.name), object->making, callable.judgement.trust,
             std::string(callable.judgement.reason), 0, Value::object(object)});
      same->second = place->second;
    }
    ++result.calls[same->second].uses;
  }
  return result;
}

}  // namespace postflight
