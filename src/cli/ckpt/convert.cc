#include <charconv>
#include <memory>

#include "cli/ckpt/output_options.h"

namespace postflight {
namespace {

struct ReshardOptions : OutputCommandOptions {
  std::uint32_t ranks = 0;
  std::uint32_t dimension = 0;
  std::string for_rank;
};

Result<Exit> convert(const OutputCommandOptions& options, Session& session) {
  OutputRequest request = TRY(output_request(options));
  const Checkpoint checkpoint = TRY(options.open(session));
  return write_checkpoint(checkpoint, std::move(request), options,
                          "postflight.ckpt.convert/1", session);
}

// "3/8": rank 3 of 8.
Result<> parse_share(const std::string& text, OutputRequest& request) {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, rank);
  const bool slash =
      first.ec == std::errc() && first.ptr != end && *first.ptr == '/';
  const auto second = slash ? std::from_chars(first.ptr + 1, end, ranks)
                            : std::from_chars_result{};
  if (!slash || second.ec != std::errc() || second.ptr != end || rank >= ranks)
    return fail(ErrorKind::kUsage,
                "'{}' is not a rank of several; write 0/8 for the first of 8",
                text);
  request.part = rank;
  request.ranks = ranks;
  return {};
}

Result<Exit> reshard(const ReshardOptions& options, Session& session) {
  if ((options.ranks == 0) == options.for_rank.empty())
    return fail(ErrorKind::kUsage,
                "give either --ranks N, for a distributed checkpoint of N "
                "ranks, or --for-rank R/N, for the part of one");
  OutputRequest request = TRY(
      output_request(options, options.for_rank.empty()
                                  ? std::optional(OutputFormat::kDistributed)
                                  : std::nullopt));
  request.dimension = options.dimension;
  if (!options.for_rank.empty()) {
    TRY(parse_share(options.for_rank, request));
  } else {
    if (request.format != OutputFormat::kDistributed)
      return fail(ErrorKind::kUsage,
                  "only a distributed checkpoint has several ranks; name a "
                  "folder, or write one rank's part with --for-rank R/N");
    request.ranks = options.ranks;
  }
  const Checkpoint checkpoint = TRY(options.open(session));
  return write_checkpoint(checkpoint, std::move(request), options,
                          "postflight.ckpt.reshard/1", session);
}

Result<Exit> salvage(const OutputCommandOptions& options, Session& session) {
  OutputRequest request = TRY(output_request(options));
  request.skip_unreadable = true;
  const Checkpoint checkpoint = TRY(options.open(session));
  return write_checkpoint(checkpoint, std::move(request), options,
                          "postflight.ckpt.salvage/1", session);
}

}  // namespace

Command ckpt_convert_command() {
  return {
      .name = "convert",
      .sentence =
          "Writes a checkpoint in another format, in bounded memory.\n"
          "What was written is read back and compared before it appears under "
          "its name. Values that the format cannot hold are an error that "
          "names them.",
      .examples =
          {{"postflight ckpt convert ckpt/ model.safetensors",
            "a distributed checkpoint as one file"},
           {"postflight ckpt convert model.pt hub --to hf --dtype bf16",
            "as Hugging Face's shards"},
           {"postflight ckpt convert run.pt m.safetensors --sidecar v.json",
            "its values beside it"},
           {"postflight ckpt convert run.pt dcp --to dcp --dry-run",
            "what would be written"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<OutputCommandOptions>();
        add_checkpoint_options(arguments, *options);
        add_output_options(arguments, *options);
        return
            [options](Session& session) { return convert(*options, session); };
      }};
}

Command ckpt_reshard_command() {
  return {
      .name = "reshard",
      .sentence =
          "Redistributes the tensors of a checkpoint over another number of "
          "ranks.\n"
          "Only the bytes that a part needs are read.",
      .examples = {{"postflight ckpt reshard ckpt/ new --ranks 16",
                    "a distributed checkpoint of 16 ranks"},
                   {"postflight ckpt reshard model.pt new --ranks 4 --dim 1",
                    "divided by columns"},
                   {"postflight ckpt reshard ckpt/ r3.safetensors --for-rank "
                    "3/8",
                    "what one rank gets"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<ReshardOptions>();
        add_checkpoint_options(arguments, *options);
        add_output_options(arguments, *options);
        arguments
            .option("--ranks", options->ranks, "N",
                    "How many ranks the distributed checkpoint has")
            .between(1, 1 << 20);
        arguments.option("--for-rank", options->for_rank, "R/N",
                         "Write only what rank R of N gets");
        arguments.option("--dim", options->dimension, "D",
                         "The dimension to divide (0)");
        return
            [options](Session& session) { return reshard(*options, session); };
      }};
}

Command ckpt_salvage_command() {
  return {
      .name = "salvage",
      .sentence =
          "Writes the intact tensors of a truncated or damaged checkpoint.\n"
          "Lost tensors are listed. Exit 1 if there are any.",
      .examples = {{"postflight ckpt salvage cut.pt saved.pt",
                    "what a killed writer left"},
                   {"postflight ckpt salvage cut.pt saved.pt --dry-run",
                    "what could be saved"},
                   {"postflight ckpt salvage ckpt/ saved.safetensors "
                    "--drop-values --json",
                    "for a program"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<OutputCommandOptions>();
        add_checkpoint_options(arguments, *options);
        add_output_options(arguments, *options);
        return
            [options](Session& session) { return salvage(*options, session); };
      }};
}

}  // namespace postflight
