#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/environment.h"
#include "cli/command.h"
#include "report/stream_report.h"
#include "stream/codec/built_in.h"
#include "stream/extension/transform_chain.h"
#include "stream/extension/transform_plugin.h"
#include "stream/file_stream.h"

namespace postflight {
namespace {

struct StreamOptions {
  std::vector<std::string> with;
  std::string input = "-";
  std::string output = "-";
  std::string key_file;
  std::vector<std::string> plugins;
  std::size_t buffer = kStreamBuffer;
  bool salvage = false;
};

constexpr std::size_t kPiece = 1 << 20;
constexpr std::size_t kMostBuffer = 1 << 30;

bool is_standard(const std::string& name) {
  return name == "-";
}

std::string shown(const std::string& input) {
  return is_standard(input) ? "standard input" : input;
}

Result<ExtensionRegistry> make_registry(const StreamOptions& options) {
  ExtensionRegistry registry = built_in_registry();
  for (const std::string& plugin : options.plugins)
    TRY(load_plugin(plugin, registry));
  return registry;
}

Result<std::optional<SecretKey>> read_key(const StreamOptions& options) {
  if (!options.key_file.empty())
    return TRY(SecretKey::read(options.key_file));
  const std::optional<std::string> text =
      process_environment()("POSTFLIGHT_KEY");
  if (!text)
    return std::nullopt;
  Result<SecretKey> key = SecretKey::from_hex(*text);
  if (!key)
    return tl::unexpected<Error>(std::move(key).error().in("POSTFLIGHT_KEY"));
  return *std::move(key);
}

Result<std::vector<TransformRequest>> requests_of(
    const std::vector<std::string>& texts) {
  std::vector<TransformRequest> all;
  for (const std::string& text : texts)
    for (TransformRequest& request : TRY(parse_transforms(text)))
      all.push_back(std::move(request));
  return all;
}

// A descriptor of our own for standard input or output.
Descriptor duplicate(int number) {
  return Descriptor(::fcntl(number, F_DUPFD_CLOEXEC, 0));
}

Result<FileSource> open_input(const StreamOptions& options) {
  if (is_standard(options.input))
    return FileSource(duplicate(STDIN_FILENO), "standard input");
  return FileSource::open(options.input);
}

Result<std::unique_ptr<Sink>> open_output(const StreamOptions& options,
                                          const Session& session) {
  if (!is_standard(options.output))
    return std::make_unique<AtomicFileSink>(
        TRY(AtomicFile::create(options.output)));
  if (session.terminal().stdout_is_terminal)
    return fail(ErrorKind::kUsage,
                "standard output is a terminal, which is no place for bytes; "
                "give -o FILE or a pipe");
  return std::make_unique<FileSink>(duplicate(STDOUT_FILENO),
                                    "standard output");
}

// Reads `from` to its end into `to`, and tells `advance` how far `input` is
// each time.
Result<> pump(Source& from, Sink& to, const std::function<void()>& advance) {
  std::vector<std::byte> piece(kPiece);
  for (;;) {
    const Taken taken = TRY(from.read(piece));
    if (taken.at_end)
      return {};
    if (taken.would_block()) {
      // Only standard input can have been made so by whoever runs us.
      pollfd waiting{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
      ::poll(&waiting, 1, /*timeout=*/-1);
      continue;
    }
    TRY(to.write(Bytes(piece).first(taken.count)));
    advance();
  }
}

class StreamRun {
 public:
  StreamRun(bool encode, const StreamOptions& options, Session& session)
      : options_(options), session_(session) {
    outcome_.encoded = encode;
    outcome_.input = options.input;
    outcome_.output = options.output;
  }

  // An error means that it could not be done at all; damage is in the outcome.
  Result<StreamOutcome> run() {
    if (session_.options().json && is_standard(options_.output))
      return fail(ErrorKind::kUsage,
                  "--json needs -o FILE, as standard output carries the bytes");
    const ExtensionRegistry registry = TRY(make_registry(options_));
    const std::optional<SecretKey> key = TRY(read_key(options_));
    TransformSettings settings;
    settings.key = key ? &*key : nullptr;
    const std::vector<TransformRequest> requests =
        TRY(requests_of(options_.with));
    const TransformChain chain =
        TRY(TransformChain::make(registry, requests, settings));
    outcome_.transforms = chain.descriptors();
    FileSource input = TRY(open_input(options_));
    const std::unique_ptr<Sink> output = TRY(open_output(options_, session_));
    input_start_ = input.tell();
    const SteadyClock clock;
    const Clock::TimePoint start = clock.now();
    TRY(outcome_.encoded ? encode(chain, input, *output)
                         : decode(chain, input, *output));
    outcome_.duration = clock.now() - start;
    return std::move(outcome_);
  }

 private:
  Result<> encode(const TransformChain& chain, FileSource& input,
                  Sink& output) {
    const std::unique_ptr<Sink> sink =
        TRY(chain.transform_to(output, options_.buffer));
    TRY(move_all(input, input, *sink));
    TRY(sink->finish());
    return finish(input, output);
  }

  Result<> decode(const TransformChain& chain, FileSource& input,
                  Sink& output) {
    const std::unique_ptr<Source> source =
        TRY(chain.transform_from(input, options_.buffer));
    Result<> moved = move_all(*source, input, output);
    if (moved)
      return finish(input, output);
    if (moved.error().kind() != ErrorKind::kCorrupt)
      return moved;
    outcome_.damage = moved.error().message();
    // Standard output has what came before already; a file only on demand.
    if (options_.salvage || is_standard(options_.output))
      return finish(input, output);
    outcome_.input_bytes = input.tell() - input_start_;
    return {};
  }

  Result<> move_all(Source& from, const FileSource& input, Sink& to) {
    const std::unique_ptr<Progress> progress =
        session_.progress({.label = outcome_.encoded ? "Encoding" : "Decoding",
                           .total_bytes = input.size()});
    std::uint64_t seen = input.tell();
    return pump(from, to, [&] {
      progress->advance(input.tell() - seen);
      seen = input.tell();
    });
  }

  Result<> finish(const FileSource& input, Sink& output) {
    outcome_.input_bytes = input.tell() - input_start_;
    outcome_.output_bytes = output.tell();
    return output.finish();
  }

  const StreamOptions& options_;
  Session& session_;
  StreamOutcome outcome_;
  std::uint64_t input_start_ = 0;  // standard input may have been read before
};

Result<Exit> run_stream(bool encode, const StreamOptions& options,
                        Session& session) {
  const StreamOutcome outcome = TRY(StreamRun(encode, options, session).run());
  if (session.options().json) {
    Output out([&](std::string_view text) { session.print(text); });
    write_stream_json(outcome, out);
  }
  if (!outcome.damage.empty()) {
    session.complain(
        fmt::format("{}: {}", shown(options.input), outcome.damage));
    if (!is_standard(options.output) && !options.salvage)
      session.complain(
          "nothing was written; --salvage keeps what lies before the damage");
    return Exit::kFound;
  }
  if (!session.options().quiet && !session.options().json)
    session.complain(stream_summary(outcome));
  return Exit::kWell;
}

void add_plugin_option(CommandArguments& arguments, StreamOptions& options) {
  arguments.option("--plugin", options.plugins, "FILE",
                   "A shared library with transforms; its code is run");
}

void add_stream_options(CommandArguments& arguments, StreamOptions& options) {
  arguments
      .option("-w,--with", options.with, "A,B",
              "Transforms, from data to disk; repeatable")
      .required();
  arguments.option("-i,--input", options.input, "FILE",
                   "What to read; standard input");
  arguments.option("-o,--output", options.output, "FILE",
                   "What to write; standard output");
  arguments.option("--key-file", options.key_file, "FILE",
                   "Holds the key; else $POSTFLIGHT_KEY");
  add_plugin_option(arguments, options);
  arguments
      .option("--buffer", options.buffer, "BYTES",
              "Bytes to hold between two transforms")
      .between(std::size_t{1}, kMostBuffer);
}

Command encode_command() {
  return {
      .name = "encode",
      .sentence = "Sends bytes through transforms, as on their way to a disk.",
      .examples =
          {{"postflight stream encode -w stream.zstd/1 <a >b", "in a pipe"},
           {"postflight stream encode -w stream.zstd/1:level=9 -i a -o b",
            "harder"},
           {"postflight stream encode -w stream.zstd/1,stream.rot13/1 <a",
            "one, then another"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<StreamOptions>();
        add_stream_options(arguments, *options);
        return [options](Session& session) {
          return run_stream(/*encode=*/true, *options, session);
        };
      }};
}

Command decode_command() {
  return {.name = "decode",
          .sentence =
              "Brings back what went through transforms.\n"
              "Takes the same list as encode. Exit 1 if the bytes are "
              "damaged, cut short or not genuine.",
          .examples =
              {{"postflight stream decode -w stream.zstd/1 <b >a", "in a pipe"},
               {"postflight stream decode -w stream.aead@postflight/1 "
                "--key-file k -i b -o a",
                "decrypt"},
               {"postflight stream decode --plugin ./x.so -w stream.x@y/1 <b",
                "of your own"}},
          .declare = [](CommandArguments& arguments) {
            const auto options = std::make_shared<StreamOptions>();
            add_stream_options(arguments, *options);
            arguments.flag("--salvage", options->salvage,
                           "Write what lies before damage to the file too");
            return [options](Session& session) {
              return run_stream(/*encode=*/false, *options, session);
            };
          }};
}

Result<Exit> list_transforms(const StreamOptions& options, Session& session) {
  const ExtensionRegistry registry = TRY(make_registry(options));
  Output out([&](std::string_view text) { session.print(text); });
  if (session.options().json)
    write_transforms_json(registry.types(), out);
  else
    write_transforms(registry.types(), session.terminal(), out);
  return Exit::kWell;
}

Command list_command() {
  return {.name = "list",
          .sentence = "Lists the transforms there are.",
          .examples = {{"postflight stream list", "with their parameters"},
                       {"postflight stream list --plugin ./xor15.so",
                        "and those of a plug-in"},
                       {"postflight stream list --json", "for a program"}},
          .declare = [](CommandArguments& arguments) {
            const auto options = std::make_shared<StreamOptions>();
            add_plugin_option(arguments, *options);
            return [options](Session& session) {
              return list_transforms(*options, session);
            };
          }};
}

}  // namespace

Command stream_command() {
  return {.name = "stream",
          .sentence = "Sends bytes through stream transforms and back.",
          .examples = {{"postflight stream encode -w stream.zstd/1 <a >b",
                        "compress"},
                       {"postflight stream decode -w stream.zstd/1 <b >a",
                        "and back"},
                       {"postflight stream list", "the transforms there are"}},
          .declare = {},
          .commands = {encode_command(), decode_command(), list_command()}};
}

}  // namespace postflight
