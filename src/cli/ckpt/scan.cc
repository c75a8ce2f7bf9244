#include <memory>

#include "base/file.h"
#include "cli/ckpt/options.h"
#include "report/checkpoint/scan.h"

namespace postflight {
namespace {

struct ScanOptions {
  std::vector<std::string> paths;
  std::string policy;
  std::string sarif;
};

Result<Exit> scan(const ScanOptions& options, Session& session) {
  if (!options.sarif.empty())
    TRY(AtomicFile::check(options.sarif, session.existing()));
  ScanPolicy policy;
  if (!options.policy.empty()) {
    const MappedFile text = TRY(MappedFile::open(options.policy));
    policy = TRY(read_policy(text.bytes()));
  }
  const std::vector<std::filesystem::path> files =
      TRY(files_below(options.paths));
  const std::unique_ptr<Progress> progress =
      session.progress({.label = "Scanning", .total_files = files.size()});
  Output out([&](std::string_view piece) {
    progress->erase();
    session.print(piece);
  });
  ScanReport report(session.options().json ? ScanReport::Form::kJson
                                           : ScanReport::Form::kText,
                    session.terminal(), out);
  std::string sarif_text;
  Output sarif_out(
      [&sarif_text](std::string_view piece) { sarif_text += piece; });
  ScanReport sarif(ScanReport::Form::kSarif, session.terminal(), sarif_out);
  TRY(scan_files(files, policy, session.context(),
                 [&](const ScannedFile& file) {
                   report.add(file);
                   sarif.add(file);
                   progress->advance(file.bytes, 1);
                 }));
  progress->finish();
  report.finish();
  sarif.finish();
  sarif_out.flush();
  if (!options.sarif.empty()) {
    AtomicFile file =
        TRY(AtomicFile::create(options.sarif, session.existing()));
    TRY(file.write(as_bytes(sarif_text)));
    TRY(file.commit());
  }
  return report.found()    ? Exit::kFound
         : report.failed() ? Exit::kCouldNotLook
                           : Exit::kWell;
}

}  // namespace

Command ckpt_scan_command() {
  return {
      .name = "scan",
      .sentence =
          "Says for every file, also in folders, whether loading it could run "
          "code.\n"
          "The verdict is that of postflight pickle. Files of kinds without "
          "pickles and tensors are counted only. Exit 1 unless all are SAFE.",
      .examples = {{"postflight ckpt scan downloads/", "a folder"},
                   {"postflight ckpt scan *.pt --policy allowed.json",
                    "with classes of your own allowed"},
                   {"postflight ckpt scan models/ --sarif scan.sarif",
                    "for a code-scanning service"},
                   {"postflight ckpt scan --json models/", "for a program"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<ScanOptions>();
        arguments
            .positional("PATH", options->paths, "Files and folders to scan")
            .required();
        arguments.option("--policy", options->policy, "FILE",
                         "JSON with the names that loading may use: "
                         "{\"allow\": [\"jobcode.*\"]}");
        arguments.option("--sarif", options->sarif, "FILE",
                         "Write the results as SARIF 2.1.0, too");
        arguments.force();
        add_threads_option(arguments);
        return [options](Session& session) { return scan(*options, session); };
      }};
}

}  // namespace postflight
