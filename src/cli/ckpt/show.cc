#include <algorithm>
#include <memory>
#include <optional>
#include <variant>

#include <fmt/format.h>

#include "base/escape.h"
#include "base/units.h"
#include "checkpoint/model/value_repr.h"
#include "checkpoint/tensor/slice.h"
#include "checkpoint/tensor/statistics.h"
#include "cli/ckpt/options.h"
#include "report/checkpoint/array_text.h"
#include "report/checkpoint/report.h"
#include "report/finding_text.h"
#include "report/json_number.h"

namespace postflight {
namespace {

struct ShowOptions : CheckpointOptions {
  std::vector<std::string> names;
  std::string slice;
};

std::string json_of(const std::optional<double>& number) {
  return number ? json_double(*number) : "null";
}

std::string json_of(const std::optional<Extreme>& number) {
  if (!number)
    return "null";
  if (const auto* const natural = std::get_if<std::uint64_t>(&*number))
    return json_number(*natural);
  if (const auto* const integer = std::get_if<std::int64_t>(&*number))
    return json_integer(*integer);
  return json_double(*std::get_if<double>(&*number));
}

void write_statistics_json(const TensorStatistics& found, Output& out) {
  out += fmt::format(
      ",\"statistics\":{{\"elements\":{},\"nan\":{},\"infinite\":{},"
      "\"zero\":{},\"min\":{},\"max\":{},\"mean\":{},\"std\":{}}}",
      json_number(found.elements), json_number(found.nan),
      json_number(found.infinite), json_number(found.zero),
      json_of(found.minimum), json_of(found.maximum), json_of(found.mean),
      json_of(found.deviation));
}

std::string text_of(const Extreme& number) {
  if (const auto* const natural = std::get_if<std::uint64_t>(&number))
    return fmt::format("{}", *natural);
  if (const auto* const integer = std::get_if<std::int64_t>(&number))
    return fmt::format("{}", *integer);
  return fmt::format("{:.6g}", *std::get_if<double>(&number));
}

std::string statistics_text(const TensorStatistics& found) {
  std::string text =
      found.minimum
          ? fmt::format("min {}  max {}  mean {:.6g}  std {:.6g}",
                        text_of(*found.minimum), text_of(*found.maximum),
                        *found.mean, *found.deviation)
          : std::string("no finite element");
  return text + fmt::format("  NaN {}  Inf {}  zero {}", found.nan,
                            found.infinite, found.zero);
}

// A tensor as it is shown, or the slice of it.
struct Shown {
  std::optional<TensorSlice> slice;
  std::optional<TensorStatistics> statistics;
  std::string remark;  // why there are no statistics, or no elements
  std::optional<std::string> text;
};

class Shower {
 public:
  Shower(const Checkpoint& checkpoint, const ShowOptions& options,
         Session& session, Output& out)
      : checkpoint_(checkpoint),
        options_(options),
        session_(session),
        out_(out),
        reader_(checkpoint) {}

  void show(std::uint32_t node) {
    const bool json = session_.options().json;
    if (json) {
      out_ += first_ ? "{" : ",{";
      write_path_json(checkpoint_, node, out_);
    } else if (!first_) {
      out_ += "\n";
    }
    first_ = false;
    const Tensor* const tensor =
        checkpoint_.tensor_at(checkpoint_.nodes()[node]);
    if (tensor == nullptr)
      show_value(node);
    else
      show_tensor(node, *tensor);
    if (json)
      out_ += "}";
  }

  // Whether something could not be shown.
  bool failed() const { return failed_; }

 private:
  void show_value(std::uint32_t node) {
    const Node& at = checkpoint_.nodes()[node];
    constexpr std::size_t kMost = 4000;
    const std::string text = value_repr(at.value, kMost);
    if (session_.options().json) {
      out_ += ",";
      write_json_field("value", text, out_);
      return;
    }
    out_ +=
        fmt::format("{}  {}\n  {}\n", shown_path(checkpoint_, node),
                    escape_for_terminal(at.type.empty() ? value_type(at.value)
                                                        : std::string(at.type)),
                    escape_for_terminal(text));
  }

  // A few bytes can be seen through as many overlapping windows as one likes.
  bool repeats_endlessly(const Tensor& tensor) const {
    constexpr std::uint64_t kTimesRead = 16;
    constexpr std::uint64_t kSoonRead = 1 << 30;
    if (tensor.elements() == 0)
      return false;
    std::uint64_t bytes = tensor.dtype.size;
    for (std::size_t i = 0; i < tensor.shape.size(); ++i)
      if (tensor.stride[i] != 0)
        bytes *= static_cast<std::uint64_t>(tensor.shape[i]);
    const std::uint64_t stored = checkpoint_.storages()[tensor.storage].size;
    return bytes > kSoonRead && bytes / kTimesRead > stored;
  }

  Result<Shown> look_at(const Tensor& whole) const {
    Shown shown;
    if (!options_.slice.empty() && (whole.readable() || whole.in_part))
      shown.slice =
          slice_tensor(whole, TRY(parse_slice(options_.slice, whole.shape)));
    const Tensor& tensor = shown.slice ? shown.slice->tensor : whole;
    if (!tensor.problem.empty())
      return fail(ErrorKind::kCorrupt, "{}", tensor.problem);
    if (!tensor.readable()) {
      shown.remark =
          tensor.has_parts() ? "it consists of its parts" : "it has no bytes";
      return shown;
    }
    if (repeats_endlessly(tensor))
      shown.remark = fmt::format("no statistics: its {} are views of far fewer",
                                 human_bytes(tensor.bytes()));
    else if (tensor.dtype.numeric != Numeric::kOpaque)
      shown.statistics = TRY(statistics_of(reader_, tensor));
    shown.text = TRY(array_text(reader_, tensor));
    return shown;
  }

  void show_tensor(std::uint32_t node, const Tensor& whole) {
    Result<Shown> shown = look_at(whole);
    const bool sliced = shown && shown->slice;
    const Tensor& tensor = sliced ? shown->slice->tensor : whole;
    std::string problem;
    if (!shown) {
      problem = shown.error().message();
      failed_ = true;
    } else if (!shown->text) {
      problem = shown->remark;
    }
    if (session_.options().json) {
      out_ += ",";
      write_type_json(tensor, out_);
      if (!problem.empty()) {
        out_ += ",";
        write_json_field("problem", problem, out_);
        return;
      }
      if (shown->statistics)
        write_statistics_json(*shown->statistics, out_);
      out_ += ",";
      write_json_field("text", *shown->text, out_);
      return;
    }
    out_ += fmt::format("{}  {}{}  {}\n", shown_path(checkpoint_, node),
                        escape_for_terminal(tensor.dtype.name),
                        shape_text(tensor), escape_for_terminal(tensor.device));
    if (!problem.empty()) {
      out_ += fmt::format("  {}\n", escape_for_terminal(problem));
      return;
    }
    if (shown->statistics && shown->statistics->elements > 0)
      out_ += fmt::format("  {}\n", statistics_text(*shown->statistics));
    else if (!shown->remark.empty())
      out_ += fmt::format("  {}\n", shown->remark);
    out_ += *shown->text + "\n";
  }

  const Checkpoint& checkpoint_;
  const ShowOptions& options_;
  Session& session_;
  Output& out_;
  const TensorReader reader_;
  bool first_ = true;
  bool failed_ = false;
};

// Whether the slice could be one of some tensor: of one with as many dimensions
// as it names, each as long as one likes.
Result<> check_slice(const std::string& slice) {
  constexpr std::int64_t kLong = std::int64_t{1} << 62;
  const auto commas = std::ranges::count(slice, ',');
  const std::vector<std::int64_t> shape(static_cast<std::size_t>(commas) + 1,
                                        kLong);
  TRY(parse_slice(slice, shape));
  return {};
}

Result<Exit> run(ShowOptions& options, Session& session) {
  TRY(check_slice(options.slice));
  const Checkpoint checkpoint = TRY(open_checkpoint(options));
  std::vector<std::uint32_t> nodes;
  for (const std::string& name : options.names)
    nodes.push_back(TRY(named_node(checkpoint, name)));
  if (nodes.empty())
    for (std::uint32_t i = 0; i < checkpoint.nodes().size(); ++i)
      if (checkpoint.nodes()[i].kind == NodeKind::kTensor)
        nodes.push_back(i);
  Output out([&session](std::string_view piece) { session.print(piece); });
  const bool json = session.options().json;
  if (json) {
    out += "{\"schema\":\"postflight.ckpt.show/1\",";
    write_json_field("file", options.path, out);
    out += ",\"items\":[";
  }
  Shower shower(checkpoint, options, session, out);
  for (const std::uint32_t node : nodes)
    shower.show(node);
  if (json) {
    out += "],\"findings\":";
    write_findings_json(checkpoint.findings(), out);
    out += "}\n";
  } else {
    write_findings(checkpoint.findings(), session.terminal(), out);
  }
  return shower.failed() ? Exit::kFound : exit_for(checkpoint.findings());
}

}  // namespace

Command ckpt_show_command() {
  return {
      .name = "show",
      .sentence =
          "Prints values of a checkpoint as numpy would, with their "
          "statistics.\n"
          "Exit 1 if some of it cannot be shown or the file is damaged.",
      .examples = {{"postflight ckpt show model.pt fc.weight", "one tensor"},
                   {"postflight ckpt show model.pt fc.weight --slice '[:4, 0]'",
                    "a part of it"},
                   {"postflight ckpt show run.pt 'opt[0].m' epoch",
                    "several keys"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<ShowOptions>();
        add_checkpoint_options(arguments, *options);
        arguments.positional("KEY", options->names,
                             "What to show; every tensor if not given");
        arguments.option("--slice", options->slice, "[A:B:C, ...]",
                         "Only these elements, as numpy's indexing has it");
        return [options](Session& session) { return run(*options, session); };
      }};
}

}  // namespace postflight
