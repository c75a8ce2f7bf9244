#include "pickle/audit/safety.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace postflight {

std::string_view safety_name(Safety safety) {
  switch (safety) {
    case Safety::kSafe:
      return "SAFE";
    case Safety::kUnknown:
      return "UNKNOWN";
    case Safety::kBroken:
      return "BROKEN";
    case Safety::kRunsCode:
      return "RUNS CODE";
    case Safety::kDangerous:
      return "DANGEROUS";
  }
  return "";
}

void SafetyVerdict::add(Reason reason) {
  safety_ = std::max(safety_, reason.safety);
  const auto alike = static_cast<std::size_t>(
      std::ranges::count(reasons_, reason.safety, &Reason::safety));
  if (alike < kMostOfADegree)
    reasons_.push_back(std::move(reason));
  else
    ++omitted_;
}

void SafetyVerdict::merge(const SafetyVerdict& other, std::string_view place) {
  for (Reason reason : other.reasons_) {
    if (reason.where.empty())
      reason.where = place;
    else if (!place.empty())
      reason.where = fmt::format("{}, {}", place, reason.where);
    add(std::move(reason));
  }
  omitted_ += other.omitted_;
}

const Reason* SafetyVerdict::lead() const {
  const auto found = std::ranges::find(reasons_, safety_, &Reason::safety);
  return found == reasons_.end() ? nullptr : &*found;
}

}  // namespace postflight
