#pragma once

#include "stream/extension/registry.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace postflight {

// A transform as it is asked for: "stream.zstd/1:level=9".
struct TransformRequest {
  std::string descriptor;
  TransformParameters parameters = {};
};

// Reads what follows --with: descriptors between commas, or one of them, a
// colon and its parameters.
Result<std::vector<TransformRequest>> parse_transforms(std::string_view text);

// Several transforms. Data goes through the first, then the second, and so on
// to the disk; reading takes them in the opposite order. Checkpoints keep the
// descriptors in this order too, whatever torch makes of them on reading.
class TransformChain {
 public:
  static Result<TransformChain> make(const ExtensionRegistry& registry,
                                     std::span<const TransformRequest> requests,
                                     const TransformSettings& settings = {});

  // `below` has to outlive the result, which is what to write to and to finish;
  // the chain need not.
  Result<std::unique_ptr<Sink>> transform_to(
      Sink& below, std::size_t buffer_size = kStreamBuffer) const;
  Result<std::unique_ptr<Source>> transform_from(
      Source& below, std::size_t buffer_size = kStreamBuffer) const;

  std::vector<std::string> descriptors() const;

 private:
  std::vector<std::unique_ptr<Extension>> transforms_;
};

}  // namespace postflight
