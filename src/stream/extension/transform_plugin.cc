#include "stream/extension/transform_plugin.h"

#include <cstring>
#include <string>
#include <utility>

#include <dlfcn.h>

#include <postflight_transform.h>

namespace postflight {
namespace {

constexpr std::size_t kMostTransforms = 1000;  // more is a bug in the plug-in

std::string text_or(const char* text, std::string_view otherwise) {
  return text != nullptr ? std::string(text) : std::string(otherwise);
}

postflight_stage stage_of(FilterStage stage) {
  switch (stage) {
    case FilterStage::kMore:
      return POSTFLIGHT_MORE;
    case FilterStage::kFlush:
      return POSTFLIGHT_FLUSH;
    case FilterStage::kLast:
      break;
  }
  return POSTFLIGHT_LAST;
}

// Trusts nothing that the plug-in reports about the buffers.
class PluginFilter : public Filter {
 public:
  PluginFilter(const postflight_transform& type, void* stream)
      : type_(type), stream_(stream) {}
  PluginFilter(const PluginFilter&) = delete;
  PluginFilter& operator=(const PluginFilter&) = delete;
  ~PluginFilter() override { type_.close(stream_); }

  bool keeps_places() const override {
    return (type_.flags & POSTFLIGHT_KEEPS_PLACES) != 0;
  }

  Result<FilterState> step(Bytes& in, std::span<std::byte>& out,
                           FilterStage stage) override {
    postflight_buffers buffers{
        .in = reinterpret_cast<const unsigned char*>(in.data()),
        .in_size = in.size(),
        .out = reinterpret_cast<unsigned char*>(out.data()),
        .out_size = out.size()};
    const postflight_buffers before = buffers;
    const postflight_state state =
        type_.step(stream_, &buffers, stage_of(stage));
    if (buffers.in_size > in.size() || buffers.out_size > out.size() ||
        buffers.in + buffers.in_size != before.in + before.in_size ||
        buffers.out + buffers.out_size != before.out + before.out_size)
      return misbehaved("left its buffers in disorder");
    const bool moved = buffers.in != before.in || buffers.out != before.out;
    in = in.last(buffers.in_size);
    out = out.last(buffers.out_size);
    switch (state) {
      case POSTFLIGHT_NEEDS_INPUT:
        if (!in.empty())
          return misbehaved("asks for input and leaves what it has");
        return FilterState::kNeedsInput;
      case POSTFLIGHT_NEEDS_ROOM:
        if (!moved)
          return misbehaved("makes no progress");
        return FilterState::kNeedsRoom;
      case POSTFLIGHT_DONE:
        if (stage != FilterStage::kLast || !in.empty())
          return misbehaved("ends before its input does");
        return FilterState::kDone;
      case POSTFLIGHT_FAILED:
        return fail(ErrorKind::kCorrupt, "{}: {}", type_.name,
                    text_or(type_.message(stream_), "no reason given"));
    }
    return misbehaved("returns an invalid state");
  }

 private:
  tl::unexpected<Error> misbehaved(std::string_view how) const {
    return fail(ErrorKind::kIo, "the plug-in for {} {}", type_.name, how);
  }

  const postflight_transform& type_;
  void* stream_;
};

std::string joined(const TransformParameters& parameters) {
  std::string text;
  for (const auto& [name, value] : parameters.all())
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value);
  return text;
}

Result<std::unique_ptr<Filter>> open_stream(const postflight_transform& type,
                                            postflight_direction direction,
                                            const std::string& parameters) {
  void* const stream = type.open(direction, parameters.c_str());
  if (stream == nullptr)
    return fail(ErrorKind::kUsage, "{}: {}", type.name,
                text_or(type.message(nullptr), "it cannot be opened"));
  return std::make_unique<PluginFilter>(type, stream);
}

ExtensionType extension_of(const postflight_transform& type,
                           const std::string& origin) {
  return {.registry_name = type.name,
          .version = type.version,
          .summary = text_or(type.summary, ""),
          .takes_any_parameters = true,
          .seekable = (type.flags & POSTFLIGHT_KEEPS_PLACES) != 0,
          .origin = origin,
          .from_descriptor = [&type](const std::string& descriptor,
                                     const TransformSettings& settings)
              -> Result<std::unique_ptr<Extension>> {
            const std::string parameters = joined(settings.parameters);
            return std::make_unique<StreamTransform>(
                descriptor,
                [&type, parameters] {
                  return open_stream(type, POSTFLIGHT_ENCODE, parameters);
                },
                [&type, parameters] {
                  return open_stream(type, POSTFLIGHT_DECODE, parameters);
                });
          }};
}

Result<> check(const postflight_transform& type) {
  if (type.abi != POSTFLIGHT_TRANSFORM_ABI)
    return fail(ErrorKind::kUnsupported,
                "it was built for version {} of the interface, but {} is "
                "supported; rebuild it",
                type.abi, POSTFLIGHT_TRANSFORM_ABI);
  if (type.name == nullptr || type.open == nullptr || type.step == nullptr ||
      type.message == nullptr || type.close == nullptr)
    return fail(ErrorKind::kUsage,
                "a transform has no name or lacks a function");
  return {};
}

Result<> add_all(void* library, const std::string& origin,
                 ExtensionRegistry& registry) {
  using Entry = const postflight_transform* (*)(std::size_t*);
  const auto entry =
      reinterpret_cast<Entry>(::dlsym(library, "postflight_transforms"));
  if (entry == nullptr)
    return fail(ErrorKind::kUsage,
                "it has no function postflight_transforms; see "
                "include/postflight_transform.h");
  std::size_t count = 0;
  const postflight_transform* const types = entry(&count);
  if (types == nullptr || count == 0 || count > kMostTransforms)
    return fail(ErrorKind::kUsage, "it provides no transforms");
  for (std::size_t i = 0; i < count; ++i)
    TRY(add_transform(types[i], origin, registry));
  return {};
}

}  // namespace

Result<> add_transform(const postflight_transform& transform,
                       const std::string& origin, ExtensionRegistry& registry) {
  TRY(check(transform));
  return registry.add(extension_of(transform, origin));
}

Result<> load_plugin(const std::filesystem::path& path,
                     ExtensionRegistry& registry) {
  std::error_code failed;
  // dlopen would search a bare name in the system's library path.
  const std::filesystem::path place = std::filesystem::absolute(path, failed);
  void* const library =
      failed ? nullptr : ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return fail(ErrorKind::kUsage, "cannot load the plug-in {}: {}",
                path.string(), failed ? failed.message() : ::dlerror());
  return add_all(library, path.string(), registry)
      .in(fmt::format("plug-in {}", path.string()));
}

}  // namespace postflight
