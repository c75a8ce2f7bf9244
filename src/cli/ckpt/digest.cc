#include <memory>

#include <fmt/format.h>

#include "base/escape.h"
#include "checkpoint/tensor/digest.h"
#include "cli/ckpt/options.h"
#include "report/checkpoint/report.h"
#include "report/finding_text.h"

namespace postflight {
namespace {

Result<Exit> run(CheckpointOptions& options, Session& session) {
  const Checkpoint checkpoint = TRY(open_checkpoint(options));
  std::vector<std::uint32_t> nodes = TRY(picked_nodes(checkpoint, options));
  // Tensors described by their parts, and those on the meta device, have no
  // bytes of their own.
  std::erase_if(nodes, [&](std::uint32_t node) {
    const Tensor* const tensor = checkpoint.tensor_at(checkpoint.nodes()[node]);
    return tensor->has_parts() || tensor->storage == kNoIndex;
  });
  const std::unique_ptr<Progress> progress = session.progress(
      {.label = "Reading", .total_bytes = totals_of(checkpoint, nodes).bytes});
  Output out([&session](std::string_view piece) { session.print(piece); });
  const bool json = session.options().json;
  if (json) {
    out += "{\"schema\":\"postflight.ckpt.digest/1\",";
    write_json_field("file", options.path, out);
    out += fmt::format(",\"format\":\"{}\",\"tensors\":[",
                       format_name(checkpoint.format()));
  }
  std::vector<Finding> findings(checkpoint.findings().begin(),
                                checkpoint.findings().end());
  bool first = true;
  const auto sink = [&](std::uint32_t node, const Result<std::string>& digest) {
    const Tensor& tensor = *checkpoint.tensor_at(checkpoint.nodes()[node]);
    progress->advance(tensor.bytes());
    if (!digest)
      findings.push_back({"unreadable_tensor", Severity::kError,
                          std::string(digest.error().message()),
                          checkpoint.path_of(node)});
    if (!json) {
      if (digest)
        out += fmt::format("{}  {}\n", *digest, shown_path(checkpoint, node));
      return;
    }
    out += first ? "{" : ",{";
    first = false;
    write_path_json(checkpoint, node, out);
    out += ",";
    write_type_json(tensor, out);
    out += digest ? fmt::format(",\"sha256\":\"{}\"}}", *digest)
                  : std::string(",\"sha256\":null}");
  };
  Result<> done = digest_tensors(checkpoint, nodes, sink);
  progress->finish();
  if (json) {
    out += "],\"findings\":";
    write_findings_json(findings, out);
    out += "}\n";
  } else {
    write_findings(findings, session.terminal(), out);
  }
  TRY(std::move(done));
  return exit_for(findings);
}

}  // namespace

Command ckpt_digest_command() {
  return {
      .name = "digest",
      .sentence =
          "Prints the SHA-256 of each tensor's true bytes.\n"
          "These are its elements in row-major order, little-endian, with "
          "strides followed and conjugation and negation done; equal digests "
          "are equal tensors, whatever the format.",
      .examples = {{"postflight ckpt digest model.pt", "all tensors"},
                   {"postflight ckpt digest --keys '*.weight' model.pt",
                    "some of them"},
                   {"postflight ckpt digest --json ckpt/ --rank 3",
                    "one rank, for a program"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<CheckpointOptions>();
        add_checkpoint_options(arguments, *options);
        add_key_options(arguments, *options);
        add_threads_option(arguments, *options);
        return [options](Session& session) { return run(*options, session); };
      }};
}

}  // namespace postflight
