#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/escape.h"
#include "checkpoint/model/data_file.h"
#include "cli/ckpt/options.h"
#include "report/checkpoint/report.h"

namespace postflight {
namespace {

struct VerifyCommandOptions : CheckpointOptions {
  std::vector<std::string> paths;
  bool strict = false;
};

Verification check(const Checkpoint& checkpoint, Session& session) {
  std::uint64_t bytes = 0;
  for (const DataFile* const file : checkpoint.files())
    bytes += file->size();
  const std::unique_ptr<Progress> progress =
      session.progress({.label = "Checking", .total_bytes = bytes});
  return verify(checkpoint, {.progress = [&progress](std::uint64_t done) {
                  progress->advance(done);
                }});
}

// "DAMAGED  model.pt: what is wrong first"; returns "DAMAGED".
std::string write_line(const std::string& path, const Checkpoint& checkpoint,
                       const Verification& found, Session& session) {
  std::string text;
  Terminal plain = session.terminal();
  plain.colour = false;
  {
    Output out([&text](std::string_view piece) { text += piece; });
    write_verification(path, checkpoint, found, plain, out);
  }
  text.erase(std::min(text.find('\n'), text.size()));
  const std::string verdict = text.substr(0, text.find(' '));
  const auto worst =
      std::ranges::max_element(found.findings, {}, &Finding::severity);
  if (worst != found.findings.end() && worst->severity != Severity::kNote)
    text += ": " + escape_for_terminal(worst->message);
  session.print(text + "\n");
  return verdict;
}

Result<Exit> run_one(const VerifyCommandOptions& options, Session& session) {
  const Checkpoint checkpoint = TRY(options.open(session));
  const Verification found = check(checkpoint, session);
  Output out([&session](std::string_view piece) { session.print(piece); });
  if (session.options().json)
    write_verification_json(options.path, checkpoint, found, out);
  else
    write_verification(options.path, checkpoint, found, session.terminal(),
                       out);
  return exit_for(found.findings, options.strict);
}

Result<Exit> run(const VerifyCommandOptions& options, Session& session) {
  VerifyCommandOptions one = options;
  if (options.paths.size() == 1) {
    one.path = options.paths[0];
    return run_one(one, session);
  }
  std::map<std::string, std::size_t> verdicts;
  Exit worst = Exit::kWell;
  for (const std::string& path : options.paths) {
    one.path = path;
    Exit exit = Exit::kCouldNotLook;
    if (session.options().json) {
      const Result<Exit> shown = run_one(one, session);
      if (!shown)
        session.complain(shown.error());
      exit = shown.value_or(Exit::kCouldNotLook);
    } else if (const Result<Checkpoint> checkpoint = one.open(session)) {
      const Verification found = check(*checkpoint, session);
      ++verdicts[write_line(path, *checkpoint, found, session)];
      exit = exit_for(found.findings, options.strict);
    } else {
      session.print(
          fmt::format("UNREADABLE  {}\n",
                      escape_for_terminal(checkpoint.error().message())));
      ++verdicts["UNREADABLE"];
    }
    // A problem that was found outranks a file that could not be looked at.
    if (worst != Exit::kFound && exit != Exit::kWell)
      worst = exit;
  }
  if (session.options().json)
    return worst;
  std::vector<std::string> counts;
  for (const auto& [verdict, count] : verdicts)
    counts.push_back(fmt::format("{} {}", count, verdict));
  session.print(fmt::format("{} checkpoints: {}\n", options.paths.size(),
                            fmt::join(counts, ", ")));
  return worst;
}

}  // namespace

Command ckpt_verify_command() {
  return {
      .name = "verify",
      .sentence =
          "Checks that a checkpoint is complete and undamaged.\n"
          "It checks the CRC of every record, torch's serialization id, every "
          "byte of an archive, every tensor against its record, and ranks "
          "against each other. Exit 1 if something is wrong.",
      .examples = {{"postflight ckpt verify model.pt", "one file"},
                   {"postflight ckpt verify checkpoints/step_100",
                    "a folder of ranks or shards"},
                   {"postflight ckpt verify *.pt",
                    "a line for each, then a summary"},
                   {"postflight ckpt verify --strict --json model.pt",
                    "warnings count; for a program"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<VerifyCommandOptions>();
        add_checkpoint_options(arguments, *options, options->paths);
        add_threads_option(arguments);
        arguments.flag("--strict", options->strict, "Exit 1 for warnings, too");
        return [options](Session& session) { return run(*options, session); };
      }};
}

}  // namespace postflight
