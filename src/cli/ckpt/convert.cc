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

struct MergeOptions : OutputCommandOptions {
  std::vector<std::string> concatenations;
};

// "*.qkv.weight=0": such tensors are joined along dimension 0.
Result<Concatenation> parse_concatenation(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  std::size_t dimension = 0;
  const char* const end = text.data() + text.size();
  const bool has_both = equals != std::string::npos && equals > 0;
  const auto read =
      has_both ? std::from_chars(text.data() + equals + 1, end, dimension)
               : std::from_chars_result{};
  if (!has_both || read.ec != std::errc() || read.ptr != end)
    return fail(ErrorKind::kUsage,
                "'{}' is not keys and a dimension; write it like "
                "'*.qkv.weight=0'",
                text);
  return Concatenation{text.substr(0, equals), dimension};
}

Result<Exit> merge(const MergeOptions& options, Session& session) {
  OutputRequest request = TRY(output_request(options));
  Joining joining{.always = true};
  for (const std::string& text : options.concatenations)
    joining.concatenations.push_back(TRY(parse_concatenation(text)));
  const Checkpoint checkpoint = TRY(options.open(session, std::move(joining)));
  if (!checkpoint.joins_ranks() && checkpoint.format() != Format::kZero)
    return fail(ErrorKind::kUsage,
                "{} is not a folder with a file of each rank ({}); postflight "
                "ckpt convert writes it in another format",
                options.path, format_title(checkpoint.format()));
  return write_checkpoint(checkpoint, std::move(request), options,
                          "postflight.ckpt.merge/1", session);
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

Command ckpt_merge_command() {
  return {
      .name = "merge",
      .sentence =
          "Joins the files of all ranks to one checkpoint.\n"
          "DTensors, ShardedTensors and DeepSpeed's partitions become whole "
          "tensors; what is the same on all ranks is written once, what "
          "differs stays apart, by rank. Replicas are compared.",
      .examples =
          {{"postflight ckpt merge step_100/ model.safetensors "
            "--drop-values",
            "the weights of all ranks"},
           {"postflight ckpt merge step_100/ all.pt --dry-run",
            "what would be written"},
           {"postflight ckpt merge tp/ all.pt --concat '*.qkv.weight=0'",
            "tensors that do not say how they were divided"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<MergeOptions>();
        add_checkpoint_options(arguments, *options);
        add_output_options(arguments, *options);
        arguments.option("--concat", options->concatenations, "GLOB=DIM",
                         "Join tensors with such keys along dimension DIM, in "
                         "the order of the ranks. May be repeated");
        return [options](Session& session) { return merge(*options, session); };
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
