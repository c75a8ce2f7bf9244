#include "pickle/audit.h"

#include <algorithm>
#include <map>

namespace postflight {
namespace {

// No name that anybody gave is as long as this; a hostile pickle can make many
// long ones out of few bytes.
constexpr std::size_t kLongestName = 200;

std::string shortened(std::string_view name) {
  if (name.size() <= kLongestName)
    return std::string(name);
  return fmt::format("{}… ({} bytes)", name.substr(0, kLongestName),
                     name.size());
}

std::string dotted(const Global& global) {
  return fmt::format("{}.{}", shortened(global.module), shortened(global.name));
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

Audit audit(const Machine& machine) {
  Audit result;
  // Long names are known by their addresses first: with a few bytes each they
  // can be put together, and called, a hundred thousand times.
  std::map<std::pair<const void*, const void*>, std::size_t> seen;
  std::map<std::pair<std::string, Trust>, std::size_t> known;
  const auto place_of = [&](const Global& global) {
    const Judgement judgement = judge(global);
    const auto [place, is_new] = known.try_emplace(
        {dotted(global), judgement.trust}, result.globals.size());
    if (is_new)
      result.globals.push_back({shortened(global.module),
                                shortened(global.name), judgement.trust,
                                std::string(judgement.reason)});
    return place->second;
  };
  for (const Global* const global : machine.globals()) {
    if (global->module.size() + global->name.size() <= kLongestName) {
      ++result.globals[place_of(*global)].uses;
      continue;
    }
    const auto [same, is_new] =
        seen.try_emplace({global->module.data(), global->name.data()});
    if (is_new)
      same->second = place_of(*global);
    ++result.globals[same->second].uses;
  }

  std::map<std::pair<const Global*, Making>, std::size_t> met;
  std::map<std::pair<std::string, Making>, std::size_t> called;
  const auto place_of_call = [&](const Object& object) {
    Callable callable = describe(object.callable);
    const auto [place, is_new] =
        called.try_emplace({callable.name, object.making}, result.calls.size());
    if (is_new)
      result.calls.push_back(
          {std::move(callable.name), object.making, callable.judgement.trust,
           std::string(callable.judgement.reason), 0, Value::object(&object)});
    return place->second;
  };
  for (const Object* const object : machine.objects()) {
    if (!object->callable.is(Kind::kGlobal)) {
      ++result.calls[place_of_call(*object)].uses;
      continue;
    }
    const auto [same, is_new] =
        met.try_emplace({&object->callable.global(), object->making});
    if (is_new)
      same->second = place_of_call(*object);
    ++result.calls[same->second].uses;
  }
  return result;
}

}  // namespace postflight
