#include "stream/extension/transform_chain.h"

#include <algorithm>
#include <utility>

namespace postflight {
namespace {

// Owns the sinks of a chain; the first is the one to write to.
class ChainSink : public Sink {
 public:
  ChainSink(Sink& below, std::vector<std::unique_ptr<Sink>> sinks)
      : sinks_(std::move(sinks)),
        front_(sinks_.empty() ? below : *sinks_.front()) {}

  Result<> write(Bytes bytes) override {
    TRY(front_.write(bytes));
    position_ += bytes.size();
    return {};
  }
  Result<> flush() override { return front_.flush(); }
  Result<> finish() override {
    for (const std::unique_ptr<Sink>& sink : sinks_)
      TRY(sink->finish());
    return {};
  }
  std::uint64_t tell() const override { return position_; }

 private:
  std::vector<std::unique_ptr<Sink>> sinks_;
  Sink& front_;
  std::uint64_t position_ = 0;
};

// Owns the sources of a chain; the last is the one to read from.
class ChainSource : public Source {
 public:
  ChainSource(Source& below, std::vector<std::unique_ptr<Source>> sources)
      : sources_(std::move(sources)),
        back_(sources_.empty() ? below : *sources_.back()) {}

  Result<Taken> read(std::span<std::byte> to) override {
    return back_.read(to);
  }
  std::uint64_t tell() const override { return back_.tell(); }
  bool seekable() const override { return back_.seekable(); }
  std::optional<Bytes> take_rest() override { return back_.take_rest(); }
  Result<> seek(std::uint64_t position) override {
    return back_.seek(position);
  }

 private:
  std::vector<std::unique_ptr<Source>> sources_;
  Source& back_;
};

}  // namespace

Result<std::vector<TransformRequest>> parse_transforms(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon != text.npos) {
    const std::string_view descriptor = text.substr(0, colon);
    std::vector<TransformRequest> one;
    one.push_back({std::string(descriptor),
                   TRY(TransformParameters::parse(text.substr(colon + 1)))});
    return one;
  }
  std::vector<TransformRequest> requests;
  for (;;) {
    const std::size_t comma = std::min(text.find(','), text.size());
    requests.push_back({std::string(text.substr(0, comma))});
    if (comma == text.size())
      return requests;
    text.remove_prefix(comma + 1);
  }
}

Result<TransformChain> TransformChain::make(
    const ExtensionRegistry& registry,
    std::span<const TransformRequest> requests,
    const TransformSettings& settings) {
  TransformChain chain;
  for (const TransformRequest& request : requests) {
    TransformSettings own = settings;
    own.parameters = request.parameters;
    chain.transforms_.push_back(
        TRY(registry.from_descriptor(request.descriptor, own)));
    if (chain.transforms_.back()->as_stream_transform() == nullptr)
      return fail(ErrorKind::kUnsupported, "{} is not a stream transform",
                  request.descriptor);
  }
  return chain;
}

Result<std::unique_ptr<Sink>> TransformChain::transform_to(
    Sink& below, std::size_t buffer_size) const {
  std::vector<std::unique_ptr<Sink>> sinks;
  Sink* next = &below;
  for (auto it = transforms_.rbegin(); it != transforms_.rend(); ++it) {
    sinks.push_back(
        TRY((*it)->as_stream_transform()->transform_to(*next, buffer_size)));
    next = sinks.back().get();
  }
  std::ranges::reverse(sinks);
  return std::make_unique<ChainSink>(below, std::move(sinks));
}

Result<std::unique_ptr<Source>> TransformChain::transform_from(
    Source& below, std::size_t buffer_size) const {
  std::vector<std::unique_ptr<Source>> sources;
  Source* next = &below;
  for (auto it = transforms_.rbegin(); it != transforms_.rend(); ++it) {
    sources.push_back(
        TRY((*it)->as_stream_transform()->transform_from(*next, buffer_size)));
    next = sources.back().get();
  }
  return std::make_unique<ChainSource>(below, std::move(sources));
}

std::vector<std::string> TransformChain::descriptors() const {
  std::vector<std::string> descriptors;
  for (const std::unique_ptr<Extension>& transform : transforms_)
    descriptors.push_back(transform->descriptor());
  return descriptors;
}

}  // namespace postflight
