#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/stream.h"
#include "cli/command.h"
#include "report/stream_report.h"

namespace postflight {
namespace {

constexpr std::size_t kMostBuffer = 1 << 30;

bool is_standard(const std::string& name) {
  return name == "-";
}

std::string shown(const std::string& input) {
  return is_standard(input) ? "standard input" : input;
}

Result<Exit> run_stream_command(StreamRequest request, Session& session) {
  request.existing = session.existing();
  if (session.options().json && is_standard(request.output))
    return fail(ErrorKind::kUsage,
                "--json needs -o FILE, as standard output carries the bytes");
  if (is_standard(request.output) && session.terminal().stdout_is_terminal)
    return fail(ErrorKind::kUsage,
                "standard output is a terminal; give -o FILE or a pipe");
  std::unique_ptr<Progress> progress;
  Result<StreamOutcome> run =
      run_stream(request, session.context(),
                 [&](std::uint64_t bytes, std::uint64_t total) {
                   if (progress == nullptr)
                     progress = session.progress(
                         {.label = request.encode ? "Encoding" : "Decoding",
                          .total_bytes = total});
                   progress->advance(bytes);
                 });
  progress.reset();
  const StreamOutcome outcome = TRY(std::move(run));
  if (session.options().json) {
    Output out([&](std::string_view text) { session.print(text); });
    write_stream_json(outcome, out);
  }
  if (!outcome.damage.empty()) {
    session.complain(
        fmt::format("{}: {}", shown(request.input), outcome.damage));
    if (!is_standard(request.output) && !request.salvage)
      session.complain(
          "nothing was written; --salvage writes what precedes the damage");
    return Exit::kFound;
  }
  if (!session.options().quiet && !session.options().json)
    session.complain(stream_summary(outcome));
  return Exit::kWell;
}

void add_plugin_option(CommandArguments& arguments, StreamRequest& options) {
  arguments.option("--plugin", options.plugins, "FILE",
                   "Shared library with transforms; its code is run");
}

void add_stream_options(CommandArguments& arguments, StreamRequest& options) {
  arguments
      .option("-w,--with", options.transforms, "A,B",
              "Transforms, in encoding order; may be repeated")
      .required();
  arguments.option("-i,--input", options.input, "FILE",
                   "Input file (standard input)");
  arguments.option("-o,--output", options.output, "FILE",
                   "Output file (standard output)");
  arguments.option("--key-file", options.key_file, "FILE",
                   "File with the key (default: $POSTFLIGHT_KEY)");
  arguments.force();
  add_plugin_option(arguments, options);
  arguments
      .option("--buffer", options.buffer_size, "BYTES",
              "Buffer size between two transforms")
      .between(std::size_t{1}, kMostBuffer);
}

Command encode_command() {
  return {.name = "encode",
          .sentence = "Encodes a stream with transforms, such as compression.",
          .examples =
              {{"postflight stream encode -w stream.zstd/1 <a >b", "in a pipe"},
               {"postflight stream encode -w stream.zstd/1:level=9 -i a -o b",
                "higher level"},
               {"postflight stream encode -w stream.zstd/1,stream.rot13/1 <a",
                "two transforms"}},
          .declare = [](CommandArguments& arguments) {
            const auto options = std::make_shared<StreamRequest>();
            add_stream_options(arguments, *options);
            return [options](Session& session) {
              return run_stream_command(*options, session);
            };
          }};
}

Command decode_command() {
  return {.name = "decode",
          .sentence =
              "Decodes a stream that was encoded with transforms.\n"
              "Takes the same list as encode. Exit 1 if the data is damaged, "
              "truncated or not authentic.",
          .examples =
              {{"postflight stream decode -w stream.zstd/1 <b >a", "in a pipe"},
               {"postflight stream decode -w stream.aead@postflight/1 "
                "--key-file k -i b -o a",
                "decrypt"},
               {"postflight stream decode --plugin ./x.so -w stream.x@y/1 <b",
                "with a plug-in"}},
          .declare = [](CommandArguments& arguments) {
            const auto options = std::make_shared<StreamRequest>();
            options->encode = false;
            add_stream_options(arguments, *options);
            arguments.flag("--salvage", options->salvage,
                           "Write what precedes the damage to the file");
            return [options](Session& session) {
              return run_stream_command(*options, session);
            };
          }};
}

Result<Exit> list_transforms(const StreamRequest& options, Session& session) {
  const ExtensionRegistry registry = TRY(stream_transforms(options.plugins));
  Output out([&](std::string_view text) { session.print(text); });
  if (session.options().json)
    write_transforms_json(registry.types(), out);
  else
    write_transforms(registry.types(), session.terminal(), out);
  return Exit::kWell;
}

Command list_command() {
  return {.name = "list",
          .sentence = "Lists the available transforms.",
          .examples = {{"postflight stream list", "with their parameters"},
                       {"postflight stream list --plugin ./xor15.so",
                        "and those of a plug-in"},
                       {"postflight stream list --json", "for a program"}},
          .declare = [](CommandArguments& arguments) {
            const auto options = std::make_shared<StreamRequest>();
            add_plugin_option(arguments, *options);
            return [options](Session& session) {
              return list_transforms(*options, session);
            };
          }};
}

}  // namespace

Command stream_command() {
  return {.name = "stream",
          .sentence = "Encodes and decodes streams with transforms.",
          .examples = {{"postflight stream encode -w stream.zstd/1 <a >b",
                        "compress"},
                       {"postflight stream decode -w stream.zstd/1 <b >a",
                        "and back"},
                       {"postflight stream list", "available transforms"}},
          .declare = {},
          .commands = {encode_command(), decode_command(), list_command()}};
}

}  // namespace postflight
