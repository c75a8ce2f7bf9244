#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/display_width.h"
#include "base/escape.h"
#include "base/units.h"
#include "report/checkpoint/report.h"
#include "report/finding_text.h"

namespace postflight {
namespace {

// The steps to a tensor. State dicts are flat: model."layers.0.weight" belongs
// to model, layers and layers.0 as if they were nested, so keys are split at
// their dots.
std::vector<std::string> steps_to(const Checkpoint& checkpoint,
                                  std::uint32_t node) {
  std::vector<std::string> steps;
  for (const Key& key : checkpoint.keys_to(node)) {
    if (key.is_number()) {
      steps.push_back(fmt::format("[{}]", key.number));
      continue;
    }
    std::string_view text = key.text;
    for (;;) {
      const std::size_t dot = text.find('.');
      steps.push_back(escape_for_terminal(text.substr(0, dot)));
      if (dot == text.npos)
        break;
      text.remove_prefix(dot + 1);
    }
  }
  return steps;
}

struct PrefixLine {
  std::string label;
  std::size_t level = 0;
  TensorTotals totals;
  std::vector<std::size_t> below = {};
};

// The first line is that of the root, which is not shown.
class PrefixLines {
 public:
  void add(const std::vector<std::string>& steps, const Tensor& tensor) {
    std::size_t at = 0;
    for (const std::string& step : steps) {
      const auto [found, fresh] = by_step_.try_emplace({at, step}, 0);
      if (fresh) {
        found->second = lines_.size();
        lines_[at].below.push_back(lines_.size());
        const std::size_t level = at == 0 ? 0 : lines_[at].level + 1;
        lines_.push_back({step, level, {}});
      }
      at = found->second;
      lines_[at].totals.add(tensor);
    }
  }

  // Parents before children.
  std::vector<const PrefixLine*> in_order() const {
    std::vector<const PrefixLine*> ordered;
    std::vector<std::size_t> waiting = {0};
    while (!waiting.empty()) {
      const PrefixLine& line = lines_[waiting.back()];
      waiting.pop_back();
      ordered.push_back(&line);
      waiting.insert(waiting.end(), line.below.rbegin(), line.below.rend());
    }
    ordered.erase(ordered.begin());
    return ordered;
  }

 private:
  std::vector<PrefixLine> lines_ = {PrefixLine()};
  std::map<std::pair<std::size_t, std::string>, std::size_t> by_step_;
};

}  // namespace

void write_tree(std::string_view name, const Checkpoint& checkpoint,
                const ListingOptions& options, std::size_t depth,
                const Terminal& terminal, Output& out) {
  out += fmt::format("{}  {}\n",
                     terminal.styled(Style::kBold, escape_for_terminal(name)),
                     checkpoint_summary(checkpoint, options.nodes));
  PrefixLines prefixes;
  for (const std::uint32_t index : options.nodes) {
    const Tensor* const tensor =
        checkpoint.tensor_at(checkpoint.nodes()[index]);
    if (tensor == nullptr)
      continue;
    std::vector<std::string> steps = steps_to(checkpoint, index);
    steps.resize(std::min(steps.size(), depth));
    if (steps.empty())
      steps.emplace_back("(root)");
    prefixes.add(steps, *tensor);
  }
  const std::vector<const PrefixLine*> lines = prefixes.in_order();
  std::size_t width = 0;
  for (const PrefixLine* const line : lines)
    width = std::max(width, 2 * line->level + display_width(line->label));
  width = std::min<std::size_t>(width, 50);
  for (const PrefixLine* const line : lines) {
    const TensorTotals& totals = line->totals;
    const std::size_t have = 2 * line->level + display_width(line->label);
    out += fmt::format("  {}{}{}  {:>7} tensor{}  {:>12}  {}\n",
                       std::string(2 * line->level, ' '), line->label,
                       std::string(have < width ? width - have : 0, ' '),
                       totals.tensors, totals.tensors == 1 ? " " : "s",
                       totals.elements, human_bytes(totals.bytes));
  }
  write_findings(checkpoint.findings(), terminal, out);
}

}  // namespace postflight
