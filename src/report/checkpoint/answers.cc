// The answers of the ckpt commands besides listings.

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/escape.h"
#include "base/units.h"
#include "checkpoint/model/value_repr.h"
#include "report/checkpoint/array_text.h"
#include "report/checkpoint/report.h"
#include "report/checkpoint/values.h"
#include "report/finding_text.h"
#include "report/wrapped.h"

namespace postflight {
namespace {

std::string number_text(const Extreme& extreme) {
  if (const auto* const real = std::get_if<double>(&extreme))
    return fmt::format("{:.6g}", *real);
  return std::visit([](auto integer) { return fmt::format("{}", integer); },
                    extreme);
}

std::string statistics_text(const TensorStatistics& found) {
  std::string text =
      found.minimum ? fmt::format("min {}  max {}  mean {:.6g}  std {:.6g}",
                                  number_text(*found.minimum),
                                  number_text(*found.maximum), *found.mean,
                                  *found.deviation)
                    : std::string("no finite element");
  return text + fmt::format("  NaN {}  Inf {}  zero {}", found.nan,
                            found.infinite, found.zero);
}

// A template may leave out nearly all of a large file.
constexpr std::size_t kShownKeys = 10;

void write_first_keys(std::string_view what, std::span<const std::string> first,
                      std::size_t count, Output& out) {
  for (const std::string& key : first.first(std::min(count, kShownKeys)))
    out += fmt::format("  {:<10}  {}\n", what, escape_for_terminal(key));
  if (count > kShownKeys)
    out += fmt::format("  {:<10}  ... and {} more (--json lists all)\n", what,
                       count - kShownKeys);
}

// "3 values are left out (epoch, lr, ...); --values FILE writes them"
std::string left_out_text(const Checkpoint& checkpoint, const ReadPlan& plan) {
  constexpr std::size_t kNamed = 3;
  // The versions of modules, which state_dict() attaches, interest nobody.
  std::vector<std::string> names;
  for (const std::uint32_t node : plan.values) {
    if (names.size() == kNamed)
      break;
    std::string path = checkpoint.path_of(node);
    if (path.find("_metadata.") == path.npos)
      names.push_back(std::move(path));
  }
  const bool one = plan.values.size() == 1;
  std::string text = fmt::format("{} value{} {} left out", plan.values.size(),
                                 one ? "" : "s", one ? "is" : "are");
  if (!names.empty())
    text += fmt::format(" ({}{})", fmt::join(names, ", "),
                        plan.values.size() > names.size() ? ", ..." : "");
  return text + fmt::format("; --values FILE writes {}", one ? "it" : "them");
}

bool has_crc(const Checkpoint& checkpoint) {
  return !checkpoint.assemblies().empty() ||
         std::ranges::any_of(checkpoint.storages(), [](const Storage& storage) {
           return storage.entry != nullptr && storage.entry->crc32 != 0;
         });
}

std::string verification_summary(const Checkpoint& checkpoint,
                                 const Verification& found) {
  if (!checkpoint.truncation().empty())
    return std::string(checkpoint.truncation());
  std::string text =
      fmt::format("{} of {} tensors can be read",
                  found.tensors - found.unreadable, found.tensors);
  if (found.records > 0)
    text +=
        fmt::format("; {} of {} records match their CRC ({})", found.crc_good,
                    found.records, human_bytes(found.bytes));
  return text;
}

}  // namespace

DigestReport::DigestReport(std::string_view name, const Checkpoint& checkpoint,
                           bool json, Output& out)
    : checkpoint_(checkpoint),
      out_(out),
      findings_(checkpoint.findings().begin(), checkpoint.findings().end()) {
  if (!json)
    return;
  json_.emplace(out);
  json_->begin("postflight.ckpt.digest/1");
  json_->field("file", name);
  json_->field("format", format_name(checkpoint.format()));
  json_->array("tensors");
}

void DigestReport::add(std::uint32_t node, const Result<std::string>& digest) {
  if (!digest)
    findings_.push_back({"unreadable_tensor", Severity::kError,
                         std::string(digest.error().message()),
                         checkpoint_.path_of(node)});
  if (!json_) {
    if (digest)
      out_ += fmt::format("{}  {}\n", *digest, shown_path(checkpoint_, node));
    return;
  }
  json_->object();
  write_path(checkpoint_, node, *json_);
  write_type(*checkpoint_.tensor_at(node), *json_);
  if (digest)
    json_->field("sha256", *digest);
  else
    json_->field("sha256", nullptr);
  json_->end();
}

void DigestReport::finish(const Terminal& terminal) {
  if (!json_) {
    write_findings(findings_, terminal, out_);
    return;
  }
  json_->end();
  write_findings(findings_, *json_);
  json_->finish();
}

ShowReport::ShowReport(std::string_view name, const Checkpoint& checkpoint,
                       bool json, Output& out)
    : checkpoint_(checkpoint), out_(out) {
  if (!json)
    return;
  json_.emplace(out);
  json_->begin("postflight.ckpt.show/1");
  json_->field("file", name);
  json_->array("items");
}

void ShowReport::begin_item() {
  if (!json_ && !first_)
    out_ += "\n";
  first_ = false;
}

void ShowReport::add_value(std::uint32_t node) {
  constexpr std::size_t kMost = 4000;
  const Node& at = checkpoint_.nodes()[node];
  const std::string text = value_repr(at.value, kMost);
  begin_item();
  if (json_) {
    json_->object();
    write_path(checkpoint_, node, *json_);
    json_->field("value", text);
    json_->end();
    return;
  }
  out_ +=
      fmt::format("{}  {}\n  {}\n", shown_path(checkpoint_, node),
                  escape_for_terminal(at.type.empty() ? value_type(at.value)
                                                      : std::string(at.type)),
                  escape_for_terminal(text));
}

void ShowReport::add_tree(std::uint32_t node) {
  begin_item();
  if (json_) {
    json_->object();
    write_path(checkpoint_, node, *json_);
    json_->field("kind", node_kind_name(checkpoint_.nodes()[node].kind));
    json_->key("tree");
    write_subtree_json(checkpoint_, node, *json_);
    json_->end();
  } else {
    write_subtree(checkpoint_, node, out_);
  }
}

void ShowReport::add_tensor(std::uint32_t node,
                            const Result<Inspection>& inspection) {
  const Tensor& whole = *checkpoint_.tensor_at(node);
  const Tensor& tensor = inspection ? inspection->tensor_of(whole) : whole;
  std::string problem;
  std::string text;
  if (!inspection) {
    problem = inspection.error().message();
    failed_ = true;
  } else if (!inspection->readable) {
    problem = inspection->remark;
  } else if (Result<std::string> array =
                 array_text(TensorReader(checkpoint_), tensor);
             array) {
    text = *std::move(array);
  } else {
    problem = array.error().message();
    failed_ = true;
  }
  const Inspection* const found = inspection ? &*inspection : nullptr;
  begin_item();
  if (json_) {
    json_->object();
    write_path(checkpoint_, node, *json_);
    write_tensor_json(tensor, found, problem, text);
    json_->end();
  } else {
    write_tensor(node, tensor, found, problem, text);
  }
}

void ShowReport::write_tensor_json(const Tensor& tensor,
                                   const Inspection* inspection,
                                   std::string_view problem,
                                   std::string_view text) {
  write_type(tensor, *json_);
  if (!problem.empty()) {
    json_->field("problem", problem);
    return;
  }
  if (inspection->statistics)
    write_statistics(*inspection->statistics, *json_);
  json_->field("text", text);
}

void ShowReport::write_tensor(std::uint32_t node, const Tensor& tensor,
                              const Inspection* inspection,
                              std::string_view problem, std::string_view text) {
  out_ += fmt::format("{}  {}{}  {}\n", shown_path(checkpoint_, node),
                      escape_for_terminal(tensor.dtype.name),
                      shape_text(tensor), escape_for_terminal(tensor.device));
  if (!problem.empty()) {
    out_ += fmt::format("  {}\n", escape_for_terminal(problem));
    return;
  }
  if (inspection->statistics && inspection->statistics->elements > 0)
    out_ += fmt::format("  {}\n", statistics_text(*inspection->statistics));
  else if (!inspection->remark.empty())
    out_ += fmt::format("  {}\n", inspection->remark);
  out_ += fmt::format("{}\n", text);
}

void ShowReport::finish(const Terminal& terminal) {
  if (!json_) {
    write_findings(checkpoint_.findings(), terminal, out_);
    return;
  }
  json_->end();
  write_findings(checkpoint_.findings(), *json_);
  json_->finish();
}

void write_read(const Checkpoint& checkpoint, const ReadPlan& plan,
                const ReadOutputs& outputs, const Terminal& terminal,
                Output& out) {
  TensorTotals totals;
  for (const PlannedTensor& planned : plan.tensors)
    if (planned.has_bytes())
      totals.add(planned.tensor());
  const auto arrow = [](std::string_view file) {
    return file.empty() ? "" : " -> " + escape_for_terminal(file);
  };
  out += fmt::format("{} tensor{}, {}{}\n", totals.tensors,
                     totals.tensors == 1 ? "" : "s", human_bytes(totals.bytes),
                     arrow(outputs.tensors));
  if (!plan.values.empty() && !outputs.values.empty())
    out +=
        fmt::format("{} value{}{}\n", plan.values.size(),
                    plan.values.size() == 1 ? "" : "s", arrow(outputs.values));
  else if (!plan.values.empty() && !outputs.tensors.empty())
    out += fmt::format("  {}\n",
                       escape_for_terminal(left_out_text(checkpoint, plan)));
  if (outputs.sliced && has_crc(checkpoint))
    out +=
        "  slices are not compared with the CRC of their records; --crc reads "
        "these whole\n";
  std::vector<std::string> unreadable;
  for (const std::uint32_t node :
       std::span(plan.unreadable)
           .first(std::min(plan.unreadable.size(), kShownKeys)))
    unreadable.push_back(checkpoint.path_of(node));
  const Selection& selection = plan.selection;
  write_first_keys("unreadable", unreadable, plan.unreadable.size(), out);
  write_first_keys("missing", selection.missing, selection.missing.size(), out);
  write_first_keys("unexpected", selection.unexpected(checkpoint, kShownKeys),
                   selection.unexpected_count(), out);
  write_findings(checkpoint.findings(), terminal, out);
}

std::vector<std::string> read_warnings(const Checkpoint& checkpoint,
                                       const ReadPlan& plan,
                                       bool values_left_out) {
  std::vector<std::string> lines;
  if (values_left_out && !plan.values.empty())
    lines.push_back(left_out_text(checkpoint, plan));
  if (!plan.selection.missing.empty())
    lines.push_back(missing_warning(plan.selection.missing));
  const std::size_t shown = std::min(plan.unreadable.size(), kShownKeys);
  for (const std::uint32_t node : std::span(plan.unreadable).first(shown))
    lines.push_back(fmt::format("left out: {}: {}", checkpoint.path_of(node),
                                checkpoint.tensor_at(node)->problem));
  if (plan.unreadable.size() > shown)
    lines.push_back(
        fmt::format("... and {} more", plan.unreadable.size() - shown));
  for (const Finding& finding : checkpoint.findings())
    if (finding.severity == Severity::kError)
      lines.push_back(
          finding.where.empty()
              ? finding.message
              : fmt::format("{} ({})", finding.message, finding.where));
  return lines;
}

VerificationVerdict verdict_of(const Checkpoint& checkpoint,
                               const Verification& found) {
  if (!checkpoint.truncation().empty() || has_problem(found.findings))
    return {"DAMAGED", "damaged", Style::kRed};
  if (has_problem(found.findings, /*strict=*/true))
    return {"ODD", "odd", Style::kYellow};
  return {"WHOLE", "whole", Style::kGreen};
}

void write_verification(std::string_view name, const Checkpoint& checkpoint,
                        const Verification& found, const Terminal& terminal,
                        Output& out) {
  const VerificationVerdict verdict = verdict_of(checkpoint, found);
  out += fmt::format(
      "{}  {}  {}\n", terminal.styled(verdict.style, verdict.word),
      safety_text(found.safety, terminal), escape_for_terminal(name));
  const std::string summary = verification_summary(checkpoint, found);
  const std::string text =
      fmt::format("{}: {}", format_title(checkpoint.format()),
                  escape_for_terminal(summary));
  out += fmt::format("  {}\n", wrapped(text, 2, terminal.width, 4));
  write_safety(found.safety, terminal, out);
  // What the summary says is not said twice.
  std::vector<Finding> findings = found.findings;
  std::erase_if(findings, [&summary](const Finding& finding) {
    return finding.message == summary;
  });
  write_findings(findings, terminal, out);
}

}  // namespace postflight
