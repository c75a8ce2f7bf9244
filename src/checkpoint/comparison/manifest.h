#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "checkpoint/model/checkpoint.h"
#include "checkpoint/tensor/digest.h"
#include "json/writer.h"

namespace postflight {

// The digests of a checkpoint's tensors, by keys without quotes: the same for
// every format and layout of the same tensors.
struct Manifest {
  struct Line {
    std::string key;
    std::string dtype;
    std::vector<std::int64_t> shape;
    std::string sha256;
    // The root over the digests of its blocks, and these if there are several.
    // Older manifests have neither.
    std::string tree = {};
    std::vector<std::string> blocks = {};

    auto operator<=>(const Line&) const = default;
  };
  std::vector<Line> tensors;  // by key

  void add(const Checkpoint& checkpoint, std::uint32_t node,
           const TensorDigest& digest);
  // The digest of all lines, each of which has the digest of a tensor.
  std::string root() const;
  // Schema postflight.manifest/1.
  void write(Output& out);
};

// Fails if the lines do not make its root.
Result<Manifest> read_manifest(Bytes json);

// An error for each tensor that is missing, different or not in the manifest.
Result<std::vector<Finding>> compare_to_manifest(
    const Checkpoint& checkpoint, const Manifest& manifest,
    const std::function<void(std::uint64_t bytes)>& progress = {});

}  // namespace postflight
