#include <algorithm>

#include <fmt/format.h>

#include "base/display_width.h"
#include "base/escape.h"
#include "base/units.h"
#include "report/checkpoint_report.h"
#include "report/finding_text.h"

namespace postflight {
namespace {

struct Total {
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
};

}  // namespace

// State dicts are flat: model."layers.0.weight" belongs to model, layers and
// layers.0 as if they were nested, so keys are split at their dots here.
void write_tree(std::string_view name, const Checkpoint& checkpoint,
                const ListingOptions& options, std::size_t depth,
                const Terminal& terminal, Output& out) {
  out += fmt::format("{}  {}\n",
                     terminal.styled(Style::kBold, escape_for_terminal(name)),
                     checkpoint_summary(checkpoint, options.nodes));
  struct Line {
    std::string label;
    std::size_t level = 0;
    Total total;
  };
  std::vector<Line> lines;
  std::vector<std::string> open;
  std::vector<std::size_t> line_of;
  for (const std::uint32_t index : options.nodes) {
    const Tensor* const tensor =
        checkpoint.tensor_at(checkpoint.nodes()[index]);
    if (tensor == nullptr)
      continue;
    std::vector<std::string> steps;
    for (const Key& key : checkpoint.keys_to(index)) {
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
    const std::size_t levels = std::min(steps.size(), depth);
    std::size_t same = 0;
    while (same < levels && same < open.size() && open[same] == steps[same])
      ++same;
    open.resize(same);
    line_of.resize(same);
    for (std::size_t level = same; level < levels; ++level) {
      open.push_back(steps[level]);
      line_of.push_back(lines.size());
      lines.push_back({steps[level], level, {}});
    }
    for (std::size_t level = 0; level < levels; ++level) {
      Total& total = lines[line_of[level]].total;
      ++total.tensors;
      if (tensor->has_parts())
        continue;
      total.elements += tensor->elements();
      total.bytes += tensor->bytes();
    }
  }
  std::size_t width = 0;
  for (const Line& line : lines)
    width = std::max(width, 2 * line.level + display_width(line.label));
  width = std::min<std::size_t>(width, 50);
  for (const Line& line : lines) {
    const std::size_t have = 2 * line.level + display_width(line.label);
    out += fmt::format("  {}{}{}  {:>7} tensor{}  {:>12}  {}\n",
                       std::string(2 * line.level, ' '), line.label,
                       std::string(have < width ? width - have : 0, ' '),
                       line.total.tensors, line.total.tensors == 1 ? " " : "s",
                       line.total.elements, human_bytes(line.total.bytes));
  }
  write_findings(checkpoint.findings, terminal, out);
}

}  // namespace postflight
