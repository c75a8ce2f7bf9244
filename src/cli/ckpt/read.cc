#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "base/atomic_file.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/units.h"
#include "checkpoint/key_filter.h"
#include "checkpoint/map_location.h"
#include "checkpoint/model/data_file.h"
#include "checkpoint/reader.h"
#include "checkpoint/template.h"
#include "checkpoint/tensor/export.h"
#include "checkpoint/tensor/reader.h"
#include "checkpoint/tensor/slice.h"
#include "cli/ckpt/options.h"
#include "report/checkpoint/report.h"
#include "report/finding_text.h"

namespace postflight {
namespace {

struct ReadCommandOptions : CheckpointOptions {
  std::string template_file;
  std::string slice;
  std::string map_location;
  std::string format;
  std::string output;

  // Of the meta device only shapes are read.
  bool writes() const { return map_location != "meta"; }
};

Result<ExportFormat> format_of(const ReadCommandOptions& options) {
  const auto is = [&options](std::string_view name) {
    return options.format == name ||
           (options.format.empty() &&
            options.output.ends_with(fmt::format(".{}", name)));
  };
  if (is("npy"))
    return ExportFormat::kNpy;
  if (is("npz"))
    return ExportFormat::kNpz;
  if (is("safetensors"))
    return ExportFormat::kSafetensors;
  if (is("raw") || is("bin"))
    return ExportFormat::kRaw;
  return fail(ErrorKind::kUsage,
              "what is {} to be? Give --format npy, npz, safetensors or raw",
              options.output);
}

struct Picked {
  std::vector<std::uint32_t> nodes;
  std::vector<TensorSlice> slices;        // beside the nodes, if there are any
  std::vector<std::uint32_t> unreadable;  // and so left out
  Selection by_template;
};

Result<Picked> pick(const Checkpoint& checkpoint,
                    const ReadCommandOptions& options) {
  Picked picked;
  if (options.template_file.empty()) {
    picked.nodes = TRY(picked_nodes(checkpoint, options));
  } else {
    const MappedFile text = TRY(MappedFile::open(options.template_file));
    const Template wanted = TRY(parse_template(text.bytes()));
    picked.by_template = TRY(select(checkpoint, 0, wanted));
    for (const Selection::Chosen& chosen : picked.by_template.tensors)
      picked.nodes.push_back(chosen.node);
    picked.by_template.tensors.clear();  // they point into the template
  }
  std::erase_if(picked.nodes, [&checkpoint](std::uint32_t node) {
    const Tensor* const tensor = checkpoint.tensor_at(checkpoint.nodes()[node]);
    return tensor->has_parts() || tensor->storage == kNoIndex;
  });
  return picked;
}

// Who asks for everything gets what is whole, and is told of the rest.
Result<> leave_out_unreadable(const Checkpoint& checkpoint, bool sliced,
                              Picked& picked) {
  std::erase_if(picked.nodes, [&](std::uint32_t node) {
    const Tensor& tensor = *checkpoint.tensor_at(checkpoint.nodes()[node]);
    const bool lost = !tensor.problem.empty() && !(tensor.in_part && sliced);
    if (lost)
      picked.unreadable.push_back(node);
    return lost;
  });
  if (!picked.nodes.empty() || picked.unreadable.empty())
    return {};
  const std::uint32_t first = picked.unreadable[0];
  return fail(ErrorKind::kCorrupt,
              "none of its tensors can be read; the first, {}: {}",
              checkpoint.path_of(first),
              checkpoint.tensor_at(checkpoint.nodes()[first])->problem);
}

std::vector<std::string> paths_of(const Checkpoint& checkpoint,
                                  std::span<const std::uint32_t> nodes) {
  std::vector<std::string> paths;
  for (const std::uint32_t node : nodes)
    paths.push_back(checkpoint.path_of(node));
  return paths;
}

Result<> write_out(const Checkpoint& checkpoint, const Picked& picked,
                   const ReadCommandOptions& options, Session& session) {
  ReadBudget budget(checkpoint);
  std::vector<NamedTensor> tensors;
  for (std::size_t i = 0; i < picked.nodes.size(); ++i) {
    const Tensor* tensor =
        checkpoint.tensor_at(checkpoint.nodes()[picked.nodes[i]]);
    if (!picked.slices.empty())
      tensor = &picked.slices[i].tensor;
    if (!tensor->problem.empty())
      return fail(ErrorKind::kCorrupt, "{}: {}",
                  checkpoint.path_of(picked.nodes[i]), tensor->problem);
    if (Result<> allowed = budget.take(*tensor); !allowed)
      return tl::unexpected(
          std::move(allowed.error()).in(checkpoint.path_of(picked.nodes[i])));
    tensors.push_back({plain_path(checkpoint, picked.nodes[i]), tensor});
  }
  const ExportFormat format = TRY(format_of(options));
  const TensorReader reader(checkpoint);
  if (options.output == "-")
    return export_tensors(reader, format, tensors,
                          [&session](Bytes piece) -> Result<> {
                            session.print(as_text(piece));
                            return {};
                          });
  AtomicFile file = TRY(AtomicFile::create(options.output));
  TRY(export_tensors(reader, format, tensors,
                     [&file](Bytes piece) { return file.write(piece); }));
  return file.commit();
}

void write_texts(std::string_view key, const std::vector<std::string>& all,
                 Output& out) {
  out += fmt::format(",\"{}\":[", key);
  for (std::size_t i = 0; i < all.size(); ++i) {
    out += i == 0 ? "{" : ",{";
    write_json_field("key", all[i], out);
    out += "}";
  }
  out += "]";
}

// Who asks for some of many tensors does not want to read of all others.
constexpr std::size_t kShownKeys = 10;

void write_keys(std::string_view what, std::span<const std::string> first,
                std::size_t count, Output& out) {
  for (const std::string& key : first.first(std::min(count, kShownKeys)))
    out += fmt::format("  {:<10}  {}\n", what, escape_for_terminal(key));
  if (count > kShownKeys)
    out += fmt::format("  {:<10}  ... and {} more (--json lists all)\n", what,
                       count - kShownKeys);
}

void report(const Checkpoint& checkpoint, const Picked& picked,
            const MapLocation& map, const ReadCommandOptions& options,
            Session& session) {
  Output out([&session](std::string_view piece) { session.print(piece); });
  const auto tensor_at = [&](std::size_t i) -> const Tensor& {
    return picked.slices.empty()
               ? *checkpoint.tensor_at(checkpoint.nodes()[picked.nodes[i]])
               : picked.slices[i].tensor;
  };
  const Selection& selection = picked.by_template;
  const std::size_t others = selection.unexpected_count();
  TensorTotals totals;
  for (std::size_t i = 0; i < picked.nodes.size(); ++i)
    totals.add(tensor_at(i));
  if (!session.options().json) {
    out += fmt::format(
        "{} tensor{}, {}{}\n", totals.tensors, totals.tensors == 1 ? "" : "s",
        human_bytes(totals.bytes),
        options.writes() ? " -> " + escape_for_terminal(options.output) : "");
    write_keys("unreadable", paths_of(checkpoint, picked.unreadable),
               picked.unreadable.size(), out);
    write_keys("missing", selection.missing, selection.missing.size(), out);
    write_keys("unexpected", selection.unexpected(checkpoint, kShownKeys),
               others, out);
    write_findings(checkpoint.findings(), session.terminal(), out);
    return;
  }
  out += "{\"schema\":\"postflight.ckpt.read/1\",";
  write_json_field("file", options.path, out);
  out += ",\"tensors\":[";
  for (std::size_t i = 0; i < picked.nodes.size(); ++i) {
    out += i == 0 ? "{" : ",{";
    write_path_json(checkpoint, picked.nodes[i], out);
    out += ",";
    write_type_json(tensor_at(i), out);
    out += ",";
    write_json_field("device", map(tensor_at(i).device), out);
    out += "}";
  }
  out += "]";
  write_texts("unreadable", paths_of(checkpoint, picked.unreadable), out);
  write_texts("missing", selection.missing, out);
  write_texts("unexpected", selection.unexpected(checkpoint, others), out);
  out += ",\"findings\":";
  write_findings_json(checkpoint.findings(), out);
  out += "}\n";
}

// Where the tensors themselves are the answer, the rest goes to stderr.
void warn(const Checkpoint& checkpoint, const Picked& picked,
          const Session& session) {
  const std::vector<std::string>& missing = picked.by_template.missing;
  if (!missing.empty())
    session.complain(missing_warning(missing));
  for (const std::uint32_t node :
       std::span(picked.unreadable)
           .first(std::min(picked.unreadable.size(), kShownKeys)))
    session.complain(
        fmt::format("left out: {}: {}", checkpoint.path_of(node),
                    checkpoint.tensor_at(checkpoint.nodes()[node])->problem));
  if (picked.unreadable.size() > kShownKeys)
    session.complain(
        fmt::format("... and {} more", picked.unreadable.size() - kShownKeys));
  for (const Finding& finding : checkpoint.findings())
    if (finding.severity == Severity::kError)
      session.complain(
          finding.where.empty()
              ? finding.message
              : fmt::format("{} ({})", finding.message, finding.where));
}

// Whether a file is one that is read, by whatever name, or lies beside these in
// the folder of the checkpoint.
bool is_input(const Checkpoint& checkpoint,
              const std::filesystem::path& output) {
  std::error_code error;
  if (!std::filesystem::exists(output, error))
    return false;
  for (const DataFile* const file : checkpoint.files())
    if (std::filesystem::equivalent(file->path(), output, error))
      return true;
  std::filesystem::directory_iterator entry(checkpoint.path(), error);
  for (; !error && entry != std::filesystem::directory_iterator();
       entry.increment(error)) {
    std::error_code none;
    if (std::filesystem::equivalent(entry->path(), output, none))
      return true;
  }
  return false;
}

Result<Exit> read(ReadCommandOptions& options, Session& session) {
  const MapLocation map = TRY(MapLocation::parse(options.map_location));
  if (!options.template_file.empty() &&
      !(options.keys.empty() && options.expressions.empty()))
    return fail(ErrorKind::kUsage,
                "a template says which keys are wanted; leave out either "
                "--template or --keys and --regex");
  if (options.writes() && options.output.empty())
    return fail(ErrorKind::kUsage,
                "say where it goes: -o FILE.npz, FILE.safetensors or -");
  if (options.writes())
    TRY(format_of(options));
  const Checkpoint checkpoint = TRY(open_checkpoint(options));
  if (options.writes() && options.output != "-" &&
      is_input(checkpoint, options.output))
    return fail(ErrorKind::kUsage,
                "{} belongs to the checkpoint that is read, and would be lost; "
                "name another file",
                options.output);
  Picked picked = TRY(pick(checkpoint, options));
  if (options.template_file.empty() && options.keys.empty() &&
      options.expressions.empty())
    TRY(leave_out_unreadable(checkpoint, !options.slice.empty(), picked));
  if (!options.slice.empty())
    for (const std::uint32_t node : picked.nodes) {
      const Tensor& tensor = *checkpoint.tensor_at(checkpoint.nodes()[node]);
      // Only what was checked can be sliced.
      if (!tensor.problem.empty() && !tensor.in_part)
        return fail(ErrorKind::kCorrupt, "{}: {}", checkpoint.path_of(node),
                    tensor.problem);
      Result<std::vector<SliceRange>> ranges =
          parse_slice(options.slice, tensor.shape);
      if (!ranges)
        return tl::unexpected(
            std::move(ranges.error()).in(checkpoint.path_of(node)));
      picked.slices.push_back(slice_tensor(tensor, *ranges));
    }
  if (options.writes())
    TRY(write_out(checkpoint, picked, options, session));
  if (options.writes() && options.output == "-")
    warn(checkpoint, picked, session);
  else
    report(checkpoint, picked, map, options, session);
  return picked.by_template.missing.empty() && picked.unreadable.empty()
             ? exit_for(checkpoint.findings())
             : Exit::kFound;
}

}  // namespace

Command ckpt_read_command() {
  return {
      .name = "read",
      .sentence =
          "Writes tensors of a checkpoint, or slices of them, to a file.\n"
          "Picked by a template, by key, or all. Exit 1 if a key of the "
          "template is missing or the file is damaged.",
      .examples =
          {{"postflight ckpt read model.pt -o model.safetensors", "all of it"},
           {"postflight ckpt read ckpt/ --rank 3 --template t.json -o x.npz",
            "what a template asks for"},
           {"postflight ckpt read model.pt --keys emb --slice '[:128]' -o "
            "e.npy",
            "some rows of a tensor"},
           {"postflight ckpt read model.pt --keys emb --format raw -o - | wc "
            "-c",
            "to a pipe"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<ReadCommandOptions>();
        add_checkpoint_options(arguments, *options);
        add_key_options(arguments, *options);
        arguments.option(
            "--template", options->template_file, "FILE",
            "A JSON file with the tree that is wanted; not with --keys");
        arguments.option("--slice", options->slice, "[A:B:C, ...]",
                         "Only these elements of each tensor");
        arguments.option("--map-location", options->map_location,
                         "DEVICE|OLD=NEW,...",
                         "The device to name instead; meta reads only shapes");
        arguments
            .option("--format", options->format, "npy|npz|raw|safetensors",
                    "If the name of the output does not say")
            .one_of({"npy", "npz", "raw", "safetensors"});
        arguments.option("-o,--output", options->output, "FILE",
                         "The file to write; - for standard output");
        add_threads_option(arguments, *options);
        return [options](Session& session) { return read(*options, session); };
      }};
}

}  // namespace postflight
