#include "flight/model/tables.h"

namespace postflight {

Tables::Tables() {
  add_text({});
  add_stack({});
  add_sizes({});
  add_dtypes({});
  add_thread({});
}

TextId Tables::add_text(std::string_view text) {
  return {texts_.intern(std::span(text.data(), text.size()))};
}

FrameId Tables::add_frame(const Frame& frame) {
  return {frames_.intern(std::span(&frame, 1))};
}

StackId Tables::add_stack(std::span<const FrameId> frames) {
  return {stacks_.intern(frames)};
}

SizesId Tables::add_sizes(std::span<const std::int64_t> encoded) {
  return {sizes_.intern(encoded)};
}

DtypesId Tables::add_dtypes(std::span<const TextId> names) {
  return {dtypes_.intern(names)};
}

ThreadId Tables::add_thread(const Thread& thread) {
  return {threads_.intern(std::span(&thread, 1))};
}

CallId Tables::add_call(const Call& call) {
  return {calls_.intern(std::span(&call, 1))};
}

std::vector<std::span<const std::int64_t>> Tables::shapes(SizesId id) const {
  std::vector<std::span<const std::int64_t>> found;
  for (std::span<const std::int64_t> rest = sizes_[id.value]; !rest.empty();) {
    const auto dimensions = static_cast<std::size_t>(rest[0]);
    found.push_back(rest.subspan(1, dimensions));
    rest = rest.subspan(1 + dimensions);
  }
  return found;
}

std::uint64_t Tables::memory_bytes() const {
  return texts_.memory_bytes() + frames_.memory_bytes() +
         stacks_.memory_bytes() + sizes_.memory_bytes() +
         dtypes_.memory_bytes() + threads_.memory_bytes() +
         calls_.memory_bytes();
}

Tables::Moved Tables::add_all(const Tables& other,
                              const std::function<GroupId(TextId)>& group_of) {
  Moved moved;
  for (std::uint32_t i = 0; i < other.text_count(); ++i)
    moved.texts.push_back(add_text(other.text({i})));
  const auto text = [&](TextId id) { return moved.texts[id.value]; };

  std::vector<FrameId> frames;
  for (std::uint32_t i = 0; i < other.frame_count(); ++i) {
    const Frame& frame = other.frame({i});
    frames.push_back(
        add_frame({text(frame.function), text(frame.file), frame.line}));
  }
  std::vector<FrameId> stack;
  for (std::uint32_t i = 0; i < other.stack_count(); ++i) {
    stack.clear();
    for (const FrameId frame : other.stack({i}))
      stack.push_back(frames[frame.value]);
    moved.stacks.push_back(add_stack(stack));
  }
  std::vector<SizesId> sizes;
  for (std::uint32_t i = 0; i < other.sizes_count(); ++i)
    sizes.push_back(add_sizes(other.encoded_sizes({i})));
  std::vector<DtypesId> dtypes;
  std::vector<TextId> names;
  for (std::uint32_t i = 0; i < other.dtypes_count(); ++i) {
    names.clear();
    for (const TextId name : other.dtypes({i}))
      names.push_back(text(name));
    dtypes.push_back(add_dtypes(names));
  }
  for (std::uint32_t i = 0; i < other.thread_count(); ++i) {
    const Thread& thread = other.thread({i});
    moved.threads.push_back(add_thread({text(thread.name), text(thread.id)}));
  }
  for (std::uint32_t i = 0; i < other.call_count(); ++i) {
    Call call = other.call({i});
    call.group = group_of(call.group_name);
    call.name = text(call.name);
    call.group_name = text(call.group_name);
    call.group_description = text(call.group_description);
    call.inputs = sizes[call.inputs.value];
    call.outputs = sizes[call.outputs.value];
    call.input_dtypes = dtypes[call.input_dtypes.value];
    call.output_dtypes = dtypes[call.output_dtypes.value];
    moved.calls.push_back(add_call(call));
  }
  return moved;
}

}  // namespace postflight
