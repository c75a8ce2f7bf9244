#pragma once

#include "base/limits.h"
#include "stream/extension/descriptor.h"
#include "stream/extension/secret_key.h"
#include "stream/extension/stream_transform.h"
#include "stream/extension/transform_parameters.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace postflight {

// What a transform may need beyond its descriptor.
struct TransformSettings {
  TransformParameters parameters = {};
  const SecretKey* key = nullptr;  // outlives the transform
  Limits limits = {};
};

// A kind of extension: its name, and how to make one.
struct ExtensionType {
  struct Parameter {
    std::string name;
    std::string summary;
  };

  std::string registry_name;  // "stream.zstd"
  std::uint64_t version = 1;  // the major one that is understood
  std::string summary;
  std::vector<Parameter> parameters = {};
  bool takes_any_parameters = false;  // only it knows which
  bool seekable = false;
  bool needs_key = false;
  std::string origin = {};  // the plug-in it came from; empty if built in

  // The descriptor's version fits and its parameters are known.
  std::function<Result<std::unique_ptr<Extension>>(
      const std::string& descriptor, const TransformSettings& settings)>
      from_descriptor = {};
};

// Knows extensions by name. What it makes must not outlive it.
class ExtensionRegistry {
 public:
  // Empty: knows none.
  ExtensionRegistry() = default;
  // Knows all that are part of the program.
  static ExtensionRegistry with_built_in();

  // Fails if the name is taken or no name.
  Result<> add(ExtensionType type);

  Result<std::unique_ptr<Extension>> from_descriptor(
      std::string_view descriptor,
      const TransformSettings& settings = {}) const;
  Result<std::vector<std::unique_ptr<Extension>>> from_descriptor_list(
      std::span<const std::string> descriptors,
      const TransformSettings& settings = {}) const;

  // Sorted by name.
  std::span<const ExtensionType> types() const { return types_; }

 private:
  const ExtensionType* find(std::string_view registry_name) const;

  std::vector<ExtensionType> types_;
};

}  // namespace postflight
