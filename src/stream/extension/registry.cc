#include "stream/extension/registry.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace postflight {
namespace {

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  });
}

bool is_registry_name(std::string_view text) {
  const std::size_t at = text.find('@');
  return is_word(text.substr(0, at)) &&
         (at == text.npos || is_word(text.substr(at + 1)));
}

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

Result<ExtensionDescriptor> parse_descriptor(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::string_view name = text.substr(0, slash);
  const std::string_view version =
      slash == text.npos ? std::string_view() : text.substr(slash + 1);
  if (!is_registry_name(name) || (slash != text.npos && !is_word(version)))
    return fail(ErrorKind::kUsage,
                "\"{}\" is not a transform; write name/version, such as "
                "stream.zstd/1",
                text);
  return ExtensionDescriptor{std::string(name), std::string(version)};
}

Result<std::uint64_t> major_version(const ExtensionDescriptor& descriptor) {
  const std::string_view version = descriptor.version;
  if (version.empty())
    return fail(ErrorKind::kUsage, "{} has no version; write {}/1",
                descriptor.registry_name, descriptor.registry_name);
  std::uint64_t major = 0;
  const char* const end = version.data() + version.size();
  const auto [stopped, failed] = std::from_chars(version.data(), end, major);
  if (failed != std::errc() || (stopped != end && *stopped != '.'))
    return fail(ErrorKind::kUsage, "{}/{}: the version is not a number",
                descriptor.registry_name, version);
  return major;
}

Result<TransformParameters> TransformParameters::parse(std::string_view text) {
  TransformParameters parameters;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view one = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const std::size_t equals = one.find('=');
    if (equals == one.npos || equals == 0 || equals + 1 == one.size())
      return fail(
          ErrorKind::kUsage,
          "\"{}\" is not a parameter; write name=value, such as level=9", one);
    if (parameters.find(one.substr(0, equals)) != nullptr)
      return fail(ErrorKind::kUsage, "{} is given twice",
                  one.substr(0, equals));
    parameters.values_.emplace_back(one.substr(0, equals),
                                    one.substr(equals + 1));
  }
  return parameters;
}

const std::string* TransformParameters::find(std::string_view name) const {
  const auto found = std::ranges::find(values_, name, [](const auto& value) {
    return std::string_view(value.first);
  });
  return found == values_.end() ? nullptr : &found->second;
}

Result<std::int64_t> TransformParameters::integer(std::string_view name,
                                                  std::int64_t otherwise,
                                                  std::int64_t low,
                                                  std::int64_t high) const {
  const std::string* const text = find(name);
  if (text == nullptr)
    return otherwise;
  std::int64_t value = 0;
  const char* const end = text->data() + text->size();
  const auto [stopped, failed] = std::from_chars(text->data(), end, value);
  if (failed != std::errc() || stopped != end || value < low || value > high)
    return fail(ErrorKind::kUsage,
                "{}={} is out of range; {} must be a number from {} to {}",
                name, *text, name, low, high);
  return value;
}

Result<std::string_view> TransformParameters::choice(
    std::string_view name, std::span<const std::string_view> choices) const {
  const std::string* const text = find(name);
  if (text == nullptr)
    return choices.front();
  const auto found = std::ranges::find(choices, std::string_view(*text));
  if (found == choices.end())
    return fail(ErrorKind::kUsage, "{}={} is unknown; {} must be {}", name,
                *text, name, fmt::join(choices, " or "));
  return *found;
}

ExtensionRegistry::ExtensionRegistry(std::vector<ExtensionType> types)
    : types_(std::move(types)) {
  std::ranges::sort(types_, {}, &ExtensionType::registry_name);
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
                "{} is not a transform name: it must not include a version",
                type.registry_name);
  if (find(type.registry_name) != nullptr)
    return fail(ErrorKind::kUsage, "there already is a transform {}",
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
                "unknown transform {}; known are {}; plug-ins can add others",
                parsed.registry_name,
                joined(types_, [](const ExtensionType& known) {
                  return std::string_view(known.registry_name);
                }));
  const std::uint64_t major = TRY(major_version(parsed));
  if (major != type->version)
    return fail(ErrorKind::kUnsupported,
                "version {} of {} is unsupported; use {}", parsed.version,
                parsed.registry_name, type->version);
  if (!type->takes_any_parameters)
    TRY(check_parameters(*type, settings.parameters));
  if (type->needs_key && settings.key == nullptr)
    return fail(ErrorKind::kUsage,
                "{} needs a key; give --key-file FILE or set POSTFLIGHT_KEY",
                parsed.registry_name);
  return type->from_descriptor(std::string(descriptor), settings)
      .in(parsed.registry_name);
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
