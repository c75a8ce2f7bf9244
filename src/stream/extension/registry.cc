#include "stream/extension/registry.h"

#include "stream/codec/built_in.h"

#include <algorithm>
#include <utility>

namespace postflight {
namespace {

std::string joined(const auto& items, const auto& name_of) {
  std::vector<std::string_view> names;
  names.reserve(items.size());
  for (const auto& item : items)
    names.push_back(name_of(item));
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<> check_parameters(const ExtensionType& type,
                          const TransformParameters& parameters) {
  for (const auto& [name, value] : parameters.all()) {
    if (std::ranges::find(type.parameters, name,
                          &ExtensionType::Parameter::name) !=
        type.parameters.end())
      continue;
    if (type.parameters.empty())
      return fail(ErrorKind::kUsage, "{} has no parameters",
                  type.registry_name);
    return fail(ErrorKind::kUsage, "{} has no parameter {}, only {}",
                type.registry_name, name,
                joined(type.parameters, [](const auto& parameter) {
                  return std::string_view(parameter.name);
                }));
  }
  return {};
}

}  // namespace

ExtensionRegistry ExtensionRegistry::with_built_in() {
  ExtensionRegistry registry;
  registry.types_ = built_in_extensions();
  std::ranges::sort(registry.types_, {}, &ExtensionType::registry_name);
  return registry;
}

const ExtensionType* ExtensionRegistry::find(
    std::string_view registry_name) const {
  const auto found =
      std::ranges::find(types_, registry_name, &ExtensionType::registry_name);
  return found == types_.end() ? nullptr : &*found;
}

Result<> ExtensionRegistry::add(ExtensionType type) {
  const ExtensionDescriptor name = TRY(parse_descriptor(type.registry_name));
  if (!name.version.empty())
    return fail(ErrorKind::kUsage,
                "{} is no name of a transform: its version stands apart",
                type.registry_name);
  if (find(type.registry_name) != nullptr)
    return fail(ErrorKind::kUsage, "there is a transform {} already",
                type.registry_name);
  const auto place = std::ranges::upper_bound(types_, type.registry_name, {},
                                              &ExtensionType::registry_name);
  types_.insert(place, std::move(type));
  return {};
}

Result<std::unique_ptr<Extension>> ExtensionRegistry::from_descriptor(
    std::string_view descriptor, const TransformSettings& settings) const {
  const ExtensionDescriptor parsed = TRY(parse_descriptor(descriptor));
  const ExtensionType* const type = find(parsed.registry_name);
  if (type == nullptr)
    return fail(ErrorKind::kUnsupported,
                "no transform is called {}; known are {}; a plug-in can add "
                "others",
                parsed.registry_name,
                joined(types_, [](const ExtensionType& known) {
                  return std::string_view(known.registry_name);
                }));
  const std::uint64_t major = TRY(major_version(parsed));
  if (major != type->version)
    return fail(ErrorKind::kUnsupported,
                "version {} of {} is unknown; {} is known", parsed.version,
                parsed.registry_name, type->version);
  if (!type->takes_any_parameters)
    TRY(check_parameters(*type, settings.parameters));
  if (type->needs_key && settings.key == nullptr)
    return fail(ErrorKind::kUsage,
                "{} needs a key; give --key-file FILE or set POSTFLIGHT_KEY",
                parsed.registry_name);
  Result<std::unique_ptr<Extension>> made =
      type->from_descriptor(std::string(descriptor), settings);
  if (!made)
    return tl::unexpected<Error>(
        std::move(made).error().in(parsed.registry_name));
  return made;
}

Result<std::vector<std::unique_ptr<Extension>>>
ExtensionRegistry::from_descriptor_list(
    std::span<const std::string> descriptors,
    const TransformSettings& settings) const {
  std::vector<std::unique_ptr<Extension>> extensions;
  for (const std::string& descriptor : descriptors)
    extensions.push_back(TRY(from_descriptor(descriptor, settings)));
  return extensions;
}

}  // namespace postflight
