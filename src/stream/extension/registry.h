#pragma once

#include "base/error.h"
#include "base/limits.h"
#include "stream/extension/secret_key.h"
#include "stream/extension/stream_transform.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace postflight {

// How a checkpoint names a transform: name[@domain][/version], e.g.
// "stream.zstd/1" or "stream.lz4@postflight/1". Names without a domain are
// torch's own.
struct ExtensionDescriptor {
  std::string registry_name;  // includes the domain: "stream.lz4@postflight"
  std::string version;        // "1", "1.2"; empty if there is none

  bool operator==(const ExtensionDescriptor&) const = default;
};

// Names, domains and versions consist of letters, digits and "._-".
Result<ExtensionDescriptor> parse_descriptor(std::string_view text);

// The number before the first dot of the version: 1 for "1" or "1.7".
Result<std::uint64_t> major_version(const ExtensionDescriptor& descriptor);

// Parameters of a transform besides its descriptor: "level=9,threads=2".
class TransformParameters {
 public:
  static Result<TransformParameters> parse(std::string_view text);

  // The parameter as a number from `low` to `high`; `otherwise` if missing.
  Result<std::int64_t> integer(std::string_view name, std::int64_t otherwise,
                               std::int64_t low, std::int64_t high) const;
  // The parameter as one of `choices`, the first of which is the default.
  Result<std::string_view> choice(
      std::string_view name, std::span<const std::string_view> choices) const;

  // In the order given.
  std::span<const std::pair<std::string, std::string>> all() const {
    return values_;
  }

 private:
  const std::string* find(std::string_view name) const;

  std::vector<std::pair<std::string, std::string>> values_;
};

// What a transform may need besides its descriptor.
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
  std::uint64_t version = 1;  // the supported major version
  std::string summary;
  std::vector<Parameter> parameters = {};
  bool takes_any_parameters = false;  // the transform validates them itself
  bool seekable = false;
  bool needs_key = false;
  std::string origin = {};  // the plug-in it came from; empty if built in

  // Called with a descriptor of a supported version and known parameters.
  std::function<Result<std::unique_ptr<Extension>>(
      const std::string& descriptor, const TransformSettings& settings)>
      from_descriptor = {};
};

// Creates extensions by name. They must not outlive the registry.
class ExtensionRegistry {
 public:
  // An empty registry.
  ExtensionRegistry() = default;
  // `types` have different names. See built_in_registry() for those that are
  // part of the program.
  explicit ExtensionRegistry(std::vector<ExtensionType> types);

  // Fails if the name is taken or invalid.
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
