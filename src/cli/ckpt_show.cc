#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "base/escape.h"
#include "base/units.h"
#include "checkpoint/tensor_slice.h"
#include "checkpoint/tensor_statistics.h"
#include "checkpoint/value_repr.h"
#include "cli/ckpt_options.h"
#include "report/array_text.h"
#include "report/checkpoint_report.h"
#include "report/finding_text.h"

namespace postflight {
namespace {

struct ShowOptions : CheckpointOptions {
  std::vector<std::string> names;
  std::string slice;
};

std::string json_double(double value) {
  return std::isnan(value)   ? "\"NaN\""
         : std::isinf(value) ? (value < 0 ? "\"-Infinity\"" : "\"Infinity\"")
                             : fmt::format("{}", value);
}

void write_statistics_json(const TensorStatistics& found, Output& out) {
  out += fmt::format(
      ",\"statistics\":{{\"elements\":{},\"nan\":{},\"infinite\":{},"
      "\"zero\":{},\"min\":{},\"max\":{},\"mean\":{},\"std\":{}}}",
      json_number(found.elements), json_number(found.nan),
      json_number(found.infinite), json_number(found.zero),
      found.minimum ? json_double(*found.minimum) : "null",
      found.maximum ? json_double(*found.maximum) : "null",
      json_double(found.mean), json_double(found.deviation));
}

std::string statistics_text(const TensorStatistics& found) {
  std::string text =
      found.minimum
          ? fmt::format("min {:.6g}  max {:.6g}  mean {:.6g}  std {:.6g}",
                        *found.minimum, *found.maximum, found.mean,
                        found.deviation)
          : std::string("no finite element");
  return text + fmt::format("  NaN {}  Inf {}  zero {}", found.nan,
                            found.infinite, found.zero);
}

class Shower {
 public:
  Shower(const Checkpoint& checkpoint, const ShowOptions& options,
         Session& session, Output& out)
      : checkpoint_(checkpoint),
        options_(options),
        session_(session),
        out_(out),
        reader_(checkpoint) {}

  Result<> show(std::uint32_t node) {
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
      TRY(show_tensor(node, *tensor));
    if (json)
      out_ += "}";
    return {};
  }

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

  Result<> show_tensor(std::uint32_t node, const Tensor& whole) {
    TensorSlice part;
    const Tensor* tensor = &whole;
    if (!options_.slice.empty() && (whole.readable() || whole.in_part)) {
      part = slice_tensor(whole, TRY(parse_slice(options_.slice, whole.shape)));
      tensor = &part.tensor;
    }
    const bool json = session_.options().json;
    if (json) {
      out_ += ",";
      write_type_json(*tensor, out_);
    } else {
      out_ +=
          fmt::format("{}  {}{}  {}\n", shown_path(checkpoint_, node),
                      escape_for_terminal(tensor->dtype.name),
                      shape_text(*tensor), escape_for_terminal(tensor->device));
    }
    if (!tensor->readable()) {
      const std::string why = tensor->has_parts() ? "it consists of its parts"
                              : tensor->problem.empty()
                                  ? "it has no bytes"
                                  : std::string(tensor->problem);
      if (json) {
        out_ += ",";
        write_json_field("problem", why, out_);
      } else {
        out_ += fmt::format("  {}\n", escape_for_terminal(why));
      }
      return {};
    }
    const bool endless = repeats_endlessly(*tensor);
    const bool numbers = tensor->dtype.numeric != Numeric::kOpaque && !endless;
    const TensorStatistics found =
        numbers ? TRY(statistics_of(reader_, *tensor)) : TensorStatistics();
    const std::string text = TRY(array_text(reader_, *tensor));
    if (json) {
      if (numbers)
        write_statistics_json(found, out_);
      out_ += ",";
      write_json_field("text", text, out_);
      return {};
    }
    if (numbers && tensor->elements() > 0)
      out_ += fmt::format("  {}\n", statistics_text(found));
    else if (endless)
      out_ += fmt::format("  no statistics: its {} are views of far fewer\n",
                          human_bytes(tensor->bytes()));
    out_ += text + "\n";
    return {};
  }

  const Checkpoint& checkpoint_;
  const ShowOptions& options_;
  Session& session_;
  Output& out_;
  const TensorReader reader_;
  bool first_ = true;
};

Exit run(ShowOptions& options, Session& session) {
  const Result<Checkpoint> checkpoint = open_checkpoint(options);
  if (!checkpoint) {
    session.complain(checkpoint.error());
    return Exit::kCouldNotLook;
  }
  std::vector<std::uint32_t> nodes;
  for (const std::string& name : options.names) {
    const Result<std::uint32_t> node = named_node(*checkpoint, name);
    if (!node) {
      session.complain(node.error());
      return Exit::kCouldNotLook;
    }
    nodes.push_back(*node);
  }
  if (nodes.empty())
    for (std::uint32_t i = 0; i < checkpoint->nodes().size(); ++i)
      if (checkpoint->nodes()[i].kind == NodeKind::kTensor)
        nodes.push_back(i);
  Output out([&session](std::string_view piece) { session.print(piece); });
  const bool json = session.options().json;
  if (json) {
    out += "{\"schema\":\"postflight.ckpt.show/1\",";
    write_json_field("file", options.path, out);
    out += ",\"items\":[";
  }
  Shower shower(*checkpoint, options, session, out);
  Result<> done;
  for (const std::uint32_t node : nodes)
    if (done = shower.show(node); !done)
      break;
  if (json)
    out += done ? "]}\n" : "";
  if (!done) {
    session.complain(done.error());
    return Exit::kCouldNotLook;
  }
  return verdict_of(checkpoint->findings);
}

}  // namespace

Command ckpt_show_command() {
  return {
      .name = "show",
      .sentence =
          "Prints values of a checkpoint as numpy would, with their "
          "statistics.",
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
