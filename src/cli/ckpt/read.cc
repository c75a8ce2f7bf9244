#include <memory>

#include "base/file.h"
#include "cli/ckpt/options.h"
#include "report/checkpoint/report.h"

namespace postflight {
namespace {

struct ReadCommandOptions : CheckpointOptions {
  std::string template_file;
  std::string slice;
  std::string map_location;
  std::string format;
  std::string output;

  // The meta device has only shapes.
  bool writes() const { return map_location != "meta"; }
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
                      session.existing());
  return CheckpointReader(checkpoint)
      .write(plan, format, [&session](Bytes piece) -> Result<> {
        session.print(as_text(piece));
        return {};
      });
}

void report(const Checkpoint& checkpoint, const ReadPlan& plan,
            const ReadCommandOptions& options, Session& session) {
  if (options.to_stdout()) {  // which has the tensors
    for (const std::string& line : read_warnings(checkpoint, plan))
      session.complain(line);
    return;
  }
  Output out([&session](std::string_view piece) { session.print(piece); });
  if (session.options().json)
    write_read_json(options.path, checkpoint, plan, out);
  else
    write_read(checkpoint, plan, options.writes() ? options.output : "",
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
  const Checkpoint checkpoint = TRY(options.open(session));
  if (options.writes() && !options.to_stdout() &&
      is_part_of(checkpoint, options.output))
    return fail(ErrorKind::kUsage,
                "{} belongs to the checkpoint that is read, and would be lost; "
                "name another file",
                options.output);
  if (options.writes() && !options.to_stdout())
    TRY(AtomicFile::check(options.output, session.existing()));
  Template wanted;
  if (options.template_file.empty()) {
    request.filter = TRY(options.filter());
  } else {
    const MappedFile text = TRY(MappedFile::open(options.template_file));
    wanted = TRY(parse_template(text.bytes()));
    request.wanted = &wanted;
  }
  const ReadPlan plan = TRY(CheckpointReader(checkpoint).plan(request));
  if (options.writes())
    TRY(write(checkpoint, plan, options, session));
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
          "They are selected by a template or by key; by default all. Exit 1 "
          "if "
          "a key of the template is missing or the file is damaged.",
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
        arguments.force();
        add_threads_option(arguments);
        return [options](Session& session) { return read(*options, session); };
      }};
}

}  // namespace postflight
