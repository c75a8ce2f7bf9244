#include "report/checkpoint/comparison.h"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/display_width.h"
#include "base/escape.h"
#include "report/checkpoint/report.h"
#include "report/finding_text.h"

namespace postflight {
namespace {

constexpr std::size_t kShownChanges = 20;
constexpr std::array<std::string_view, ElementDifference::kUlpClasses>
    kUlpNames = {"1", "2-3", "4-15", "16-255", "256+"};

std::vector<std::int64_t> index_of(const Tensor& tensor, std::uint64_t flat) {
  std::vector<std::int64_t> index(tensor.shape.size());
  for (std::size_t i = index.size(); i-- > 0;) {
    const auto size =
        static_cast<std::uint64_t>(std::max<std::int64_t>(tensor.shape[i], 1));
    index[i] = static_cast<std::int64_t>(flat % size);
    flat /= size;
  }
  return index;
}

std::string type_text(const Tensor& tensor) {
  return fmt::format("{}{}", escape_for_terminal(tensor.dtype.name),
                     shape_text(tensor));
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  const double share =
      100 * static_cast<double>(part) / static_cast<double>(whole);
  return part < whole && share > 99.9 ? "99.9 %"
                                      : fmt::format("{:.3g} %", share);
}

std::string elements_text(const Tensor& tensor,
                          const ElementDifference& found) {
  if (found.changed == 0)
    return "the same numbers in another dtype";
  std::string text =
      fmt::format("{} of {} elements ({})", found.changed, found.elements,
                  percent(found.changed, found.elements));
  text += fmt::format("  max abs {:.4g}  max rel {:.4g}", found.max_absolute,
                      found.max_relative);
  if (found.cosine)
    text += fmt::format("  cosine {:.6f}", *found.cosine);
  text += fmt::format("  first [{}]",
                      fmt::join(index_of(tensor, found.first), ", "));
  return text;
}

std::string ulps_text(const ElementDifference& found) {
  std::string text;
  for (std::size_t i = 0; i < found.ulps.size(); ++i)
    if (found.ulps[i] > 0)
      text += fmt::format("{}{}: {}", text.empty() ? "ulps apart  " : "  ",
                          kUlpNames[i], found.ulps[i]);
  return text;
}

std::string change_text(const TensorChange& change, const Checkpoint& before,
                        const Checkpoint& after) {
  switch (change.kind) {
    case ChangeKind::kAdded:
      return type_text(*after.tensor_at(change.after));
    case ChangeKind::kRemoved:
      return type_text(*before.tensor_at(change.before));
    case ChangeKind::kMoved:
      return fmt::format("from {}", escape_for_terminal(*change.moved_from));
    case ChangeKind::kUnknown:
      return escape_for_terminal(change.problem);
    default:
      break;
  }
  const Tensor& a = *before.tensor_at(change.before);
  const Tensor& b = *after.tensor_at(change.after);
  std::string text = a.dtype == b.dtype && change.elements
                         ? type_text(a)
                         : type_text(a) + " -> " + type_text(b);
  if (change.elements && change.elements->measured)
    text += "  " + elements_text(b, *change.elements);
  return text;
}

}  // namespace

void write_difference(const ComparedNames& names, const Checkpoint& before,
                      const Checkpoint& after,
                      const CheckpointDifference& found, bool all,
                      const Terminal& terminal, Output& out) {
  std::map<ChangeKind, std::size_t> counts;
  for (const TensorChange& change : found.tensors)
    ++counts[change.kind];
  std::vector<std::string> parts;
  for (const auto& [kind, count] : counts)
    parts.push_back(fmt::format("{} {}", count, change_name(kind)));
  parts.push_back(fmt::format("{} equal", found.equal));
  if (found.close > 0)
    parts.push_back(fmt::format("{} within the tolerance", found.close));
  out += fmt::format(
      "{}  {}  {}\n  tensors: {}\n",
      found.any()
          ? terminal.styled(Style::kYellow, "DIFFERENT")
          : terminal.styled(Style::kGreen, found.close > 0 ? "CLOSE" : "EQUAL"),
      escape_for_terminal(names.before), escape_for_terminal(names.after),
      fmt::join(parts, ", "));
  const std::size_t shown = all ? found.tensors.size()
                                : std::min(found.tensors.size(), kShownChanges);
  std::size_t width = 0;
  for (std::size_t i = 0; i < shown; ++i)
    width = std::max(width,
                     display_width(escape_for_terminal(found.tensors[i].key)));
  width = std::min<std::size_t>(width, 50);
  for (std::size_t i = 0; i < shown; ++i) {
    const TensorChange& change = found.tensors[i];
    const std::string key = escape_for_terminal(change.key);
    out += fmt::format("  {:<8}  {:<{}}  {}\n", change_name(change.kind), key,
                       width, change_text(change, before, after));
    if (change.elements)
      if (const std::string ulps = ulps_text(*change.elements); !ulps.empty())
        out += fmt::format("  {:<8}  {:<{}}    {}\n", "", "", width, ulps);
  }
  if (shown < found.tensors.size())
    out += fmt::format("  ... and {} more (--all shows them)\n",
                       found.tensors.size() - shown);
  const std::size_t values =
      all ? found.values.size() : std::min(found.values.size(), kShownChanges);
  for (std::size_t i = 0; i < values; ++i) {
    const ValueChange& change = found.values[i];
    const auto text = [](const std::optional<std::string>& value) {
      return value ? escape_for_terminal(*value) : std::string("(none)");
    };
    out += fmt::format("  value     {}  {} -> {}\n",
                       escape_for_terminal(change.key), text(change.before),
                       text(change.after));
  }
  if (values < found.values.size())
    out += fmt::format("  ... and {} more values (--all shows them)\n",
                       found.values.size() - values);
}

void write_difference_json(const ComparedNames& names, const Checkpoint& before,
                           const Checkpoint& after,
                           const CheckpointDifference& found, Output& out) {
  JsonWriter json(out);
  json.begin("postflight.ckpt.diff/1");
  json.field("before", names.before);
  json.field("after", names.after);
  json.field("different", found.any());
  json.field("compared", found.compared);
  json.field("equal", found.equal);
  json.field("close", found.close);
  json.array("tensors");
  for (const TensorChange& change : found.tensors) {
    json.object();
    json.field("change", change_name(change.kind));
    json.field("key", change.key);
    if (change.moved_from)
      json.field("moved_from", *change.moved_from);
    const auto side = [&json](std::string_view name,
                              const Checkpoint& checkpoint,
                              std::uint32_t node) {
      if (node == kNoIndex)
        return;
      json.object(name);
      write_type(*checkpoint.tensor_at(node), json);
      json.end();
    };
    side("before", before, change.before);
    side("after", after, change.after);
    if (!change.problem.empty())
      json.field("problem", change.problem);
    if (change.elements && change.elements->measured) {
      const ElementDifference& elements = *change.elements;
      json.object("elements");
      json.field("count", elements.elements);
      json.field("changed", elements.changed);
      json.field("beyond_tolerance", elements.beyond);
      if (elements.changed > 0)
        json.array("first",
                   index_of(*after.tensor_at(change.after), elements.first));
      json.field("max_abs", elements.max_absolute);
      json.field("max_rel", elements.max_relative);
      json.field("cosine", elements.cosine);
      json.object("ulps");
      for (std::size_t i = 0; i < kUlpNames.size(); ++i)
        json.field(kUlpNames[i], elements.ulps[i]);
      json.end();
      json.end();
    }
    json.end();
  }
  json.end();
  json.array("values");
  for (const ValueChange& change : found.values) {
    json.object();
    json.field("key", change.key);
    json.field("before", change.before);
    json.field("after", change.after);
    json.end();
  }
  json.end();
  write_findings({}, json);
  json.finish();
}

void write_health(std::string_view name, const Checkpoint& checkpoint,
                  const CheckpointHealth& health, const Terminal& terminal,
                  Output& out) {
  std::vector<std::uint32_t> nodes;
  for (const TensorHealth& one : health.tensors)
    nodes.push_back(one.node);
  out += fmt::format("{}  {}\n",
                     terminal.styled(Style::kBold, escape_for_terminal(name)),
                     checkpoint_summary(checkpoint, nodes));
  std::size_t width = 3;
  for (const std::uint32_t node : nodes)
    width = std::max(width, display_width(shown_path(checkpoint, node)));
  width = std::min<std::size_t>(width, 40);
  out += fmt::format("  {:<{}}  {:>10} {:>10} {:>10} {:>10}  {}\n", "key",
                     width, "min", "max", "mean", "std", "odd");
  const auto cell = [](const auto& value) {
    if (!value)
      return std::string("-");
    if constexpr (requires { value->index(); })
      return std::visit(
          [](auto number) {
            return fmt::format("{:.4g}", static_cast<double>(number));
          },
          *value);
    else
      return fmt::format("{:.4g}", *value);
  };
  for (const TensorHealth& one : health.tensors) {
    if (!one.statistics) {
      out += fmt::format("  {:<{}}  unreadable\n",
                         shown_path(checkpoint, one.node), width);
      continue;
    }
    const TensorStatistics& found = *one.statistics;
    std::string odd;
    const auto count = [&](std::uint64_t number, std::string_view what) {
      if (number > 0)
        odd += fmt::format("{}{} {}", odd.empty() ? "" : ", ", number, what);
    };
    count(found.nan, "NaN");
    count(found.infinite, "Inf");
    count(found.zero, "zero");
    count(found.denormal, "denormal");
    std::string line = fmt::format(
        "  {:<{}}  {:>10} {:>10} {:>10} {:>10}  {}",
        shown_path(checkpoint, one.node), width, cell(found.minimum),
        cell(found.maximum), cell(found.mean), cell(found.deviation), odd);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  write_findings(health.findings, terminal, out);
}

void write_health_json(std::string_view name, const Checkpoint& checkpoint,
                       const CheckpointHealth& health, Output& out) {
  JsonWriter json(out);
  json.begin("postflight.ckpt.stats/1");
  json.field("file", name);
  json.field("format", format_name(checkpoint.format()));
  json.array("tensors");
  for (const TensorHealth& one : health.tensors) {
    json.object();
    write_path(checkpoint, one.node, json);
    write_type(*checkpoint.tensor_at(one.node), json);
    if (one.statistics)
      write_statistics(*one.statistics, json);
    else
      json.field("problem", one.statistics.error().message());
    json.array("signs", one.signs);
    json.end();
  }
  json.end();
  write_findings(health.findings, json);
  json.finish();
}

}  // namespace postflight
