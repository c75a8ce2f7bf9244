#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/escape.h"
#include "base/file.h"
#include "checkpoint/comparison/manifest.h"
#include "checkpoint/model/data_file.h"
#include "cli/ckpt/options.h"
#include "report/checkpoint/report.h"

namespace postflight {
namespace {

struct VerifyCommandOptions : CheckpointOptions {
  std::vector<std::string> paths;
  bool strict = false;
  std::string manifest;
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

// "DAMAGED  BROKEN  model.pt: what is wrong first".
void write_line(const std::string& path, const Checkpoint& checkpoint,
                const Verification& found, Session& session) {
  const VerificationVerdict verdict = verdict_of(checkpoint, found);
  std::string text = fmt::format(
      "{}  {}  {}", session.terminal().styled(verdict.style, verdict.word),
      safety_text(found.safety, session.terminal()), escape_for_terminal(path));
  const auto worst =
      std::ranges::max_element(found.findings, {}, &Finding::severity);
  if (worst != found.findings.end() && worst->severity != Severity::kNote)
    text += ": " + escape_for_terminal(worst->message);
  else if (const Reason* const lead = found.safety.lead())
    text += ": " + escape_for_terminal(lead->message);
  session.print(text + "\n");
}

Exit exit_of(const Verification& found, bool strict) {
  return exit_for(has_problem(found.findings, strict) ||
                  !found.safety.is_safe());
}

// What of it is not as the manifest says.
Result<> add_manifest(const Checkpoint& checkpoint, const std::string& file,
                      Verification& found) {
  const MappedFile text = TRY(MappedFile::open(file));
  const Manifest manifest = TRY(read_manifest(text.bytes()).in(file));
  for (Finding& finding : TRY(compare_to_manifest(checkpoint, manifest)))
    found.findings.push_back(std::move(finding));
  return {};
}

// What could be saved of a damaged checkpoint, as a command to paste.
std::string next_step(const VerifyCommandOptions& options,
                      const Verification& found) {
  const std::filesystem::path path = options.path;
  const bool damaged = found.unreadable > 0 || found.crc_bad > 0;
  if (!damaged || found.unreadable == found.tensors || options.path == "-")
    return "";
  std::filesystem::path name =
      path.has_filename() ? path.filename() : path.parent_path().filename();
  const std::string extension =
      name.extension() == ".safetensors" ? ".safetensors" : ".pt";
  if (path.has_extension())
    name = name.stem();
  if (name.empty() || name == "." || name == "..")
    name = "checkpoint";
  std::string words = shell_quoted(options.path);
  if (options.rank)
    words += fmt::format(" --rank {}", *options.rank);
  for (const std::string& plugin : options.plugins)
    words += " --plugin " + shell_quoted(plugin);
  if (options.key_file)
    words += " --key-file " + shell_quoted(*options.key_file);
  return fmt::format("\nNext: postflight ckpt salvage {} {} --dry-run\n", words,
                     shell_quoted(name.native() + "-salvaged" + extension));
}

Result<Exit> run_one(const VerifyCommandOptions& options, Session& session) {
  const Checkpoint checkpoint = TRY(options.open(session));
  Verification found = check(checkpoint, session);
  if (!options.manifest.empty())
    TRY(add_manifest(checkpoint, options.manifest, found));
  Output out([&session](std::string_view piece) { session.print(piece); });
  if (session.options().json) {
    write_verification_json(options.path, checkpoint, found, out);
  } else {
    write_verification(options.path, checkpoint, found, session.terminal(),
                       out);
    out += next_step(options, found);
  }
  return exit_of(found, options.strict);
}

Result<Exit> run(const VerifyCommandOptions& options, Session& session) {
  if (!options.manifest.empty() && options.paths.size() > 1)
    return fail(ErrorKind::kUsage,
                "a manifest is that of one checkpoint; give one");
  VerifyCommandOptions one = options;
  if (options.paths.size() == 1) {
    one.path = options.paths[0];
    return run_one(one, session);
  }
  std::map<std::string_view, std::size_t> verdicts;
  std::map<std::string_view, std::size_t> unsafe;
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
      write_line(path, *checkpoint, found, session);
      ++verdicts[verdict_of(*checkpoint, found).word];
      if (!found.safety.is_safe())
        ++unsafe[safety_name(found.safety.safety())];
      exit = exit_of(found, options.strict);
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
  std::string text = fmt::format("{} checkpoints: {}", options.paths.size(),
                                 fmt::join(counts, ", "));
  counts.clear();
  for (const auto& [safety, count] : unsafe)
    counts.push_back(fmt::format("{} {}", count, safety));
  if (!counts.empty())
    text += fmt::format("; {}", fmt::join(counts, ", "));
  session.print(text + "\n");
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
          "against each other. Beside WHOLE, ODD or DAMAGED it prints the "
          "verdict of postflight pickle: what loading it in Python would run. "
          "Exit 1 if it "
          "is DAMAGED or not SAFE.",
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
        arguments.option("--manifest", options->manifest, "FILE",
                         "Compare the tensors with what digest --manifest "
                         "wrote, in whatever format");
        arguments.flag("--strict", options->strict, "Exit 1 for warnings, too");
        return [options](Session& session) { return run(*options, session); };
      }};
}

}  // namespace postflight
