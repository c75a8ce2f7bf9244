#include <memory>
#include <string>
#include <vector>

#include "api/checkpoint.h"
#include "base/file.h"
#include "checkpoint/torch/pickle_file.h"
#include "cli/command.h"
#include "report/pickle/report.h"

namespace postflight {
namespace {

struct PickleOptions {
  std::vector<std::string> files;
  bool all = false;
  bool disassemble = false;
  bool decompile = false;
  bool loaders = false;
  bool summary = false;
};

void write(const std::string& name, const PickleFile& file,
           const PickleOptions& options, Session& session) {
  Output out([&session](std::string_view piece) { session.print(piece); });
  const PickleReportOptions report = {.all = options.all,
                                      .tree = !options.summary};
  const bool json = session.options().json;
  if (options.disassemble && json)
    write_disassembly_json(name, file, out);
  else if (options.disassemble)
    write_disassembly(name, file, report, session.terminal(), out);
  else if (options.decompile && json)
    write_decompilation_json(name, file, report, out);
  else if (options.decompile)
    write_decompilation(name, file, report, session.terminal(), out);
  else if (options.loaders && json)
    write_loaders_json(name, file, out);
  else if (options.loaders)
    write_loaders(name, file, session.terminal(), out);
  else if (json)
    write_pickle_report_json(name, file, report, out);
  else
    write_pickle_report(name, file, report, session.terminal(), out);
}

Exit verdict(const PickleFile& file) {
  return file.verdict().is_safe() ? Exit::kWell : Exit::kFound;
}

Result<Exit> show(const std::string& name, const PickleOptions& options,
                  Session& session) {
  const Limits& limits = session.context().limits;
  const MappedFile bytes = TRY(MappedFile::open(input_path(name), limits));
  const PickleFile file = TRY(PickleFile::read(bytes.bytes(), limits).in(name));
  write(name, file, options, session);
  return verdict(file);
}

Exit run(const PickleOptions& options, Session& session) {
  Exit worst = Exit::kWell;
  const std::unique_ptr<Progress> progress = session.progress(
      {.label = "Reading", .total_files = options.files.size()});
  for (const std::string& name : options.files) {
    if (&name != &options.files.front() && !session.options().json)
      session.print("\n");
    progress->erase();
    const Result<Exit> shown = show(name, options, session);
    if (!shown)
      session.complain(shown.error());
    const Exit exit = shown.value_or(Exit::kCouldNotLook);
    progress->advance(0, 1);
    // A problem that was found outranks a file that could not be looked at.
    if (worst != Exit::kFound && exit != Exit::kWell)
      worst = exit;
  }
  return worst;
}

}  // namespace

Command pickle_command() {
  return {
      .name = "pickle",
      .sentence =
          "Shows every pickle in a file and what loading it would run.\n"
          "postflight itself never runs anything in it. Exit 1 unless it is "
          "SAFE: only plain data and torch's own rebuilding functions, and "
          "nothing left unexamined.",
      .examples = {{"postflight pickle model.pt", "a checkpoint"},
                   {"postflight pickle nccl_trace_rank_0", "a bare pickle"},
                   {"postflight pickle --summary *.pt", "only what would run"},
                   {"postflight pickle --disassemble x.pkl", "its opcodes"},
                   {"postflight pickle --json x.pkl | jq .verdict",
                    "for a program"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<PickleOptions>();
        arguments
            .positional(
                "FILE", options->files,
                "Pickles, or files with pickles inside (.pt, .distcp); - is "
                "standard input")
            .required();
        arguments.flag("--all", options->all,
                       "Show long lists, strings and deep nesting in full");
        arguments.flag("--summary", options->summary,
                       "Omit the values; show only what loading would run");
        arguments.flag("--disassemble", options->disassemble,
                       "List the opcodes instead of the values");
        arguments.flag("--decompile", options->decompile,
                       "Show what it does as Python, which is never run");
        arguments.flag("--against-loaders", options->loaders,
                       "Show what each of Python's unpicklers would see, and "
                       "where they differ");
        return [options](Session& session) { return run(*options, session); };
      }};
}

}  // namespace postflight
