#include <memory>

#include "base/file.h"
#include "cli/ckpt/options.h"
#include "report/checkpoint/report.h"
#include "report/checkpoint/values.h"

namespace postflight {
namespace {

struct ReadCommandOptions : CheckpointOptions {
  std::string template_file;
  std::string slice;
  std::string map_location;
  std::string format;
  std::string output;
  std::string values;
  bool crc = false;
  bool no_crc = false;

  ReadOptions reading() const {
    return {.crc = crc      ? CrcCheck::kAlways
                   : no_crc ? CrcCheck::kNever
                            : CrcCheck::kWhole};
  }
  // The meta device has only shapes.
  bool writes() const {
    return map_location != "meta" && (!output.empty() || values.empty());
  }
  bool to_stdout() const { return writes() && output == "-"; }
};

Result<ExportFormat> format_of(const ReadCommandOptions& options) {
  if (options.output.empty())
    return fail(ErrorKind::kUsage,
                "no output was given; add -o FILE.npz, FILE.safetensors or -");
  const std::optional<ExportFormat> format =
      options.format.empty() ? export_format_of_file(options.output)
                             : export_format_named(options.format);
  if (!format)
    return fail(ErrorKind::kUsage,
                "the name {} does not say its format; give --format npy, npz, "
                "safetensors or raw",
                options.output);
  return *format;
}

Result<> write(const Checkpoint& checkpoint, const ReadPlan& plan,
               const ReadCommandOptions& options, Session& session) {
  const ExportFormat format = TRY(format_of(options));
  if (!options.to_stdout())
    return write_file(checkpoint, plan, format, options.output,
                      session.existing(), options.reading());
  return CheckpointReader(checkpoint, options.reading())
      .write(plan, format, [&session](Bytes piece) -> Result<> {
        session.print(as_text(piece));
        return {};
      });
}

// The tensors that were selected are in it, too, so that it says where each
// value belongs.
Result<> write_values(const Checkpoint& checkpoint, const ReadPlan& plan,
                      const ReadCommandOptions& options, Session& session) {
  std::vector<std::uint32_t> leaves = plan.values;
  for (const PlannedTensor& planned : plan.tensors)
    leaves.push_back(planned.node);
  const std::string text = json_text([&](JsonWriter& json) {
                             write_values_tree(checkpoint, leaves, json);
                           }) +
                           "\n";
  if (options.values == "-") {
    session.print(text);
    return {};
  }
  AtomicFile file = TRY(AtomicFile::create(options.values, session.existing()));
  TRY(file.write(as_bytes(text)));
  return file.commit();
}

void report(const Checkpoint& checkpoint, const ReadPlan& plan,
            const ReadCommandOptions& options, Session& session) {
  if (options.to_stdout() || options.values == "-") {  // which has the answer
    for (const std::string& line :
         read_warnings(checkpoint, plan, options.values.empty()))
      session.complain(line);
    return;
  }
  Output out([&session](std::string_view piece) { session.print(piece); });
  if (session.options().json)
    write_read_json(options.path, checkpoint, plan, out);
  else
    write_read(checkpoint, plan,
               {.tensors = options.writes() ? options.output : "",
                .values = options.values,
                .sliced = !options.slice.empty() && !options.crc},
               session.terminal(), out);
}

Result<Exit> read(const ReadCommandOptions& options, Session& session) {
  MapLocation map_location = TRY(MapLocation::parse(options.map_location));
  ReadRequest request{
      .slice = options.slice,
      .map_location = std::move(map_location),
      // Without --keys, skip unreadable tensors and report them.
      .skip_unreadable =
          options.template_file.empty() && !options.selects_keys()};
  if (!options.template_file.empty() && options.selects_keys())
    return fail(ErrorKind::kUsage,
                "a template says which keys are wanted; leave out either "
                "--template or --keys and --regex");
  if (options.writes())
    TRY(format_of(options));
  if (options.to_stdout() && options.values == "-")
    return fail(ErrorKind::kUsage,
                "tensors and values cannot both go to standard output; name a "
                "file for one of them");
  const Checkpoint checkpoint = TRY(options.open(session));
  if (options.writes() && !options.to_stdout() &&
      is_part_of(checkpoint, options.output))
    return fail(ErrorKind::kUsage,
                "{} belongs to the checkpoint that is read, and would be lost; "
                "name another file",
                options.output);
  if (options.writes() && !options.to_stdout())
    TRY(AtomicFile::check(options.output, session.existing()));
  if (!options.values.empty() && options.values != "-") {
    if (is_part_of(checkpoint, options.values))
      return fail(ErrorKind::kUsage,
                  "{} belongs to the checkpoint that is read, and would be "
                  "lost; name another file",
                  options.values);
    TRY(AtomicFile::check(options.values, session.existing()));
  }
  Template wanted;
  if (options.template_file.empty()) {
    request.filter = TRY(options.filter());
  } else {
    const MappedFile text = TRY(MappedFile::open(options.template_file));
    wanted = TRY(parse_template(text.bytes()));
    request.wanted = &wanted;
  }
  const ReadPlan plan = TRY(CheckpointReader(checkpoint).plan(request));
  if (options.writes() && plan.tensors.empty() && !plan.values.empty() &&
      options.selects_keys())
    return fail(ErrorKind::kUsage,
                "the keys that match are values, and no file of tensors can "
                "hold them; write them with --values FILE");
  if (options.writes())
    TRY(write(checkpoint, plan, options, session));
  if (!options.values.empty())
    TRY(write_values(checkpoint, plan, options, session));
  report(checkpoint, plan, options, session);
  return plan.selection.missing.empty() && plan.unreadable.empty()
             ? exit_for(checkpoint.findings())
             : Exit::kFound;
}

}  // namespace

Command ckpt_read_command() {
  return {
      .name = "read",
      .sentence =
          "Writes tensors of a checkpoint, or slices of them, to a file.\n"
          "They are selected by a template or by key; by default all. Records "
          "that are read whole are compared with their CRC. Exit 1 if a key "
          "of the template is missing or the file is damaged.",
      .examples =
          {{"postflight ckpt read model.pt -o model.safetensors",
            "its tensors"},
           {"postflight ckpt read run.pt --values - | jq .epoch",
            "its other values"},
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
            "A JSON file that describes the wanted tree; not with --keys");
        arguments.option("--slice", options->slice, "[A:B:C, ...]",
                         "Only these elements of each tensor");
        arguments.option(
            "--map-location", options->map_location, "DEVICE|OLD=NEW,...",
            "The device to report instead; meta reads only shapes");
        arguments
            .option("--format", options->format, "npy|npz|raw|safetensors",
                    "Output format (default: by the extension of -o)")
            .one_of({"npy", "npz", "raw", "safetensors"});
        arguments.option("-o,--output", options->output, "FILE",
                         "The file to write; - for standard output");
        arguments.option("--values", options->values, "FILE",
                         "Write the other values as JSON: epoch, lr, ...; - "
                         "for standard output");
        arguments.flag("--crc", options->crc,
                       "Check the whole record of each slice against its CRC");
        arguments.flag("--no-crc", options->no_crc,
                       "Do not compare records with their CRC");
        arguments.force();
        add_threads_option(arguments);
        return [options](Session& session) { return read(*options, session); };
      }};
}

}  // namespace postflight
