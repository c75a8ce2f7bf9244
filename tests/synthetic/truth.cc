#include "synthetic/truth.h"

#include <algorithm>

#include <fmt/format.h>

namespace postflight::synthetic {
namespace {

std::string numbers(const std::vector<int>& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

std::string words(const std::vector<std::string>& values) {
  std::string text = "[";
  for (const std::string& value : values)
    text += fmt::format("{}\"{}\"", text.size() > 1 ? ", " : "", value);
  return text + "]";
}

}  // namespace

bool Truth::allows(const Answer& answer) const {
  if (answer.culprits == culprits &&
      (answer.kind == kind || std::ranges::count(accept, answer.kind) > 0))
    return true;
  const bool nobody = std::ranges::any_of(
      also, [](const Answer& other) { return other.culprits.empty(); });
  if (answer.kind == "no_dump" &&
      (nobody || kind == "all_joined_stuck" ||
       (kind == "no_dump" &&
        std::ranges::includes(answer.culprits, culprits))) &&
      std::ranges::all_of(answer.culprits, [&](int rank) {
        return std::ranges::count(culprits, rank) +
                   std::ranges::count(doubtful, rank) >
               0;
      }))
    return true;
  return std::ranges::count(also, answer) > 0;
}

std::string truth_json(const Truth& truth, int world,
                       const std::string& backend, const std::string& fault) {
  std::string answers;
  for (const Answer& answer : truth.also)
    answers += fmt::format("{}{{\"kind\": \"{}\", \"culprits\": {}}}",
                           answers.empty() ? "" : ", ", answer.kind,
                           numbers(answer.culprits));
  return fmt::format(
      "{{\n \"kind\": \"{}\",\n \"accept\": {},\n \"culprits\": {},\n"
      " \"also\": [{}],\n \"findings\": {},\n \"world\": {},\n"
      " \"backend\": \"{}\",\n \"case\": \"{}\",\n \"note\": \"{}\",\n"
      " \"no_dump\": {},\n \"empty_dumps\": {},\n \"cut_dumps\": {}\n}}\n",
      truth.kind, words(truth.accept), numbers(truth.culprits), answers,
      words(truth.findings), world, backend, fault, truth.note,
      numbers(truth.no_dump), numbers(truth.empty_dumps),
      numbers(truth.cut_dumps));
}

}  // namespace postflight::synthetic
