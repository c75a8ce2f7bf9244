#include "pickle/audit/trust.h"

#include <algorithm>
#include <array>
#include <string>

#include "pickle/names/renaming.h"

namespace postflight {
namespace {

constexpr std::string_view kReachesAnything =
    "reaches any function by its name";

// Modules that others import and thus hand out as attributes.
constexpr std::array<std::string_view, 24> kHandedOut = {
    "os",       "sys",       "subprocess", "builtins",    "__builtin__",
    "posix",    "nt",        "importlib",  "ctypes",      "socket",
    "shutil",   "pickle",    "marshal",    "runpy",       "pty",
    "io",       "imp",       "gc",         "inspect",     "threading",
    "tempfile", "functools", "operator",   "__builtins__"};

bool is_handed_out(std::string_view name) {
  return std::ranges::find(kHandedOut, name) != kHandedOut.end();
}

Judgement judgement_of(const KnownName* known) {
  return known == nullptr ? Judgement()
                          : Judgement{known->trust, known->effect, known->rule,
                                      known->shared};
}

Judgement judge_plain_name(std::string_view module, std::string_view name) {
  const Judgement known = judgement_of(known_name(module, name));
  if (known.trust == Trust::kUnknown && known.rule == Rule::kNone &&
      is_handed_out(name))
    return {Trust::kDangerous, kReachesAnything};
  return known;
}

// From protocol 4 on, a.b.c of a module is an attribute of an attribute: of a
// class, or of a module that the module has imported.
Judgement judge_dotted_name(std::string_view module, std::string_view name) {
  constexpr int kMostParts = 16;
  const Judgement whole = judgement_of(known_name(module, name));
  if (whole.trust != Trust::kUnknown || whole.rule != Rule::kNone)
    return whole;
  std::string path(module);
  std::string_view before = module;
  std::string_view rest = name;
  for (int part = 0; part < kMostParts; ++part) {
    const std::size_t dot = rest.find('.');
    const std::string_view first = rest.substr(0, dot);
    if (first.starts_with("__") || is_handed_out(first))
      return {Trust::kDangerous, kReachesAnything};
    for (const std::string_view owner : {std::string_view(path), before})
      if (const Judgement found = judge_plain_name(owner, first);
          found.trust == Trust::kDangerous)
        return {Trust::kDangerous, found.reason};
    if (dot == rest.npos)
      return {};
    path.append(".").append(first);
    before = first;
    rest = rest.substr(dot + 1);
  }
  return {Trust::kDangerous, kReachesAnything};
}

Judgement judge_exactly(const Global& global) {
  return global.name.find('.') == global.name.npos
             ? judge_plain_name(global.module, global.name)
             : judge_dotted_name(global.module, global.name);
}

}  // namespace

std::string_view trust_name(Trust trust) {
  switch (trust) {
    case Trust::kPlain:
      return "plain";
    case Trust::kTorch:
      return "torch";
    case Trust::kUnknown:
      return "unknown";
    case Trust::kDangerous:
      return "dangerous";
  }
  return "";
}

Judgement judge(const Global& global) {
  const Judgement exact = judge_exactly(global);
  const Global now = renamed(global);
  if (now.module == global.module && now.name == global.name)
    return exact;
  // Python 2 imports one, Python 3 the other.
  return exact.trust == Trust::kDangerous ? exact : judge_exactly(now);
}

}  // namespace postflight
