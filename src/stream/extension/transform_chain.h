#pragma once

#include "stream/extension/registry.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace postflight {

// A transform as requested by the user: "stream.zstd/1:level=9".
struct TransformRequest {
  std::string descriptor;
  TransformParameters parameters = {};
};

// Parses the argument of --with: descriptors separated by commas, or one
// descriptor, a colon and its parameters.
Result<std::vector<TransformRequest>> parse_transforms(std::string_view text);

// A chain of transforms. On its way to the disk data goes through the first,
// then the second, and so on; reading applies them in reverse. Checkpoints
// store the descriptors in writing order, too, although torch does not reverse
// them on reading (docs/streams.md).
class TransformChain {
 public:
  static Result<TransformChain> make(const ExtensionRegistry& registry,
                                     std::span<const TransformRequest> requests,
                                     const TransformSettings& settings = {});

  // `below` must outlive the result, which the caller finishes; the chain
  // need not outlive it.
  Result<std::unique_ptr<Sink>> transform_to(
      Sink& below, std::size_t buffer_size = kStreamBuffer) const;
  Result<std::unique_ptr<Source>> transform_from(
      Source& below, std::size_t buffer_size = kStreamBuffer) const;

  std::vector<std::string> descriptors() const;

 private:
  std::vector<std::unique_ptr<Extension>> transforms_;
};

}  // namespace postflight
