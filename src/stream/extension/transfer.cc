#include "stream/extension/transfer.h"

#include <memory>
#include <utility>

namespace postflight {
namespace {

constexpr std::size_t kTransferPiece = 1 << 20;

// Reads `from`, which is `input` or on top of it, to its end into `to`.
Result<> pump(Source& from, FileSource& input, Sink& to,
              const TransferOptions& options) {
  std::vector<std::byte> piece(kTransferPiece);
  std::uint64_t seen = input.tell();
  for (;;) {
    const Taken taken = TRY(from.read(piece));
    if (taken.at_end)
      return {};
    if (taken.would_block()) {
      input.wait();
      continue;
    }
    TRY(to.write(Bytes(piece).first(taken.count)));
    options.progress(input.tell() - seen, input.size());
    seen = input.tell();
  }
}

Result<> encode(const TransformChain& chain, FileSource& input, Sink& output,
                const TransferOptions& options) {
  const std::unique_ptr<Sink> sink =
      TRY(chain.transform_to(output, options.buffer_size));
  TRY(pump(input, input, *sink, options));
  return sink->finish();
}

Result<> decode(const TransformChain& chain, FileSource& input, Sink& output,
                const TransferOptions& options) {
  const std::unique_ptr<Source> source =
      TRY(chain.transform_from(input, options.buffer_size));
  return pump(*source, input, output, options);
}

}  // namespace

Result<StreamOutcome> transfer(const TransformChain& chain, FileSource& input,
                               Sink& output, const TransferOptions& options) {
  StreamOutcome outcome = {.encoded = options.encode,
                           .transforms = chain.descriptors()};
  // Standard input may have been partly read before.
  const std::uint64_t start = input.tell();
  Result<> moved = options.encode ? encode(chain, input, output, options)
                                  : decode(chain, input, output, options);
  outcome.input_bytes = input.tell() - start;
  if (!moved) {
    if (options.encode || moved.error().kind() != ErrorKind::kCorrupt)
      return tl::unexpected(std::move(moved).error());
    outcome.damage = moved.error().message();
    if (!options.finish_damaged)
      return outcome;
  }
  outcome.output_bytes = output.tell();
  TRY(output.finish());
  return outcome;
}

}  // namespace postflight
