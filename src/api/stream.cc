#include "api/stream.h"

#include <memory>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/environment.h"
#include "stream/codec/built_in.h"
#include "stream/extension/secret_key.h"
#include "stream/extension/transform_plugin.h"
#include "stream/file_stream.h"

namespace postflight {
namespace {

Result<std::optional<SecretKey>> stream_key(const std::string& file) {
  if (!file.empty())
    return TRY(SecretKey::read(file));
  const std::optional<std::string> text =
      process_environment()("POSTFLIGHT_KEY");
  if (!text)
    return std::nullopt;
  return TRY(SecretKey::from_hex(*text).in("POSTFLIGHT_KEY"));
}

Result<std::vector<TransformRequest>> transform_requests(
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

Result<FileSource> open_input(const std::string& name) {
  if (name == "-")
    return FileSource(duplicate(STDIN_FILENO), "standard input");
  return FileSource::open(name);
}

Result<std::unique_ptr<Sink>> open_output(const std::string& name,
                                          Existing existing) {
  if (name == "-")
    return std::make_unique<FileSink>(duplicate(STDOUT_FILENO),
                                      "standard output");
  return std::make_unique<AtomicFileSink>(
      TRY(AtomicFile::create(name, existing)));
}

}  // namespace

Result<ExtensionRegistry> stream_transforms(
    const std::vector<std::string>& plugins) {
  ExtensionRegistry registry = built_in_registry();
  for (const std::string& plugin : plugins)
    TRY(load_plugin(plugin, registry));
  return registry;
}

Result<StreamOutcome> run_stream(
    const StreamRequest& request, const Context& context,
    const std::function<void(std::uint64_t bytes, std::uint64_t total)>&
        progress) {
  const ExtensionRegistry registry = TRY(stream_transforms(request.plugins));
  const std::optional<SecretKey> key = TRY(stream_key(request.key_file));
  const std::vector<TransformRequest> requests =
      TRY(transform_requests(request.transforms));
  const TransformChain chain = TRY(TransformChain::make(
      registry, requests,
      {.key = key ? &*key : nullptr, .limits = context.limits}));
  FileSource input = TRY(open_input(request.input));
  const std::unique_ptr<Sink> output =
      TRY(open_output(request.output, request.existing));
  const SteadyClock clock;
  const Clock::TimePoint start = clock.now();
  StreamOutcome outcome =
      TRY(transfer(chain, input, *output,
                   {.encode = request.encode,
                    .buffer_size = request.buffer_size,
                    .finish_damaged = request.salvage || request.output == "-",
                    .progress = progress}));
  outcome.duration = clock.now() - start;
  outcome.input = request.input;
  outcome.output = request.output;
  return outcome;
}

}  // namespace postflight
