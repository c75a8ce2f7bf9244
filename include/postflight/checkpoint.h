// Checkpoints of every format, without torch, for C++17 and later.

#ifndef POSTFLIGHT_CHECKPOINT_H
#define POSTFLIGHT_CHECKPOINT_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <postflight/context.h>
#include <postflight/postflight.h>

namespace postflight {

struct OpenOptions {
  std::optional<std::uint32_t> rank = {};  // in a folder of rank files
  std::vector<std::string> plugins = {};   // shared libraries of transforms
  std::string key = {};                    // for encrypted items
};

// Bytes of the mapped file; valid while the Checkpoint lives.
struct View {
  const void* data = nullptr;
  std::size_t size = 0;
};

// What it hands out is valid while it lives.
class Checkpoint {
 public:
  static Checkpoint open(const std::string& path,
                         const OpenOptions& options = {},
                         const Context* context = nullptr) {
    const std::vector<const char*> plugins = detail::pointers(options.plugins);
    const postflight_open_options given = c_options(options, plugins);
    return Checkpoint(
        detail::make<postflight_checkpoint, postflight_checkpoint_free>(
            postflight_checkpoint_open, of(context), path.c_str(), &given));
  }
  // A file in memory, which stays unchanged while the Checkpoint lives.
  static Checkpoint open(const void* data, std::size_t size,
                         const std::string& name,
                         const OpenOptions& options = {},
                         const Context* context = nullptr) {
    const std::vector<const char*> plugins = detail::pointers(options.plugins);
    const postflight_open_options given = c_options(options, plugins);
    return Checkpoint(
        detail::make<postflight_checkpoint, postflight_checkpoint_free>(
            postflight_checkpoint_open_bytes, of(context), data, size,
            name.c_str(), &given));
  }

  // JSON, as the program's ckpt ls, verify and digest print it.
  std::string list(bool all = false) const {
    return detail::text(postflight_checkpoint_list, handle(), all ? 1 : 0);
  }
  std::string verify() const {
    return detail::text(postflight_checkpoint_verify, handle());
  }
  std::string digest() const {
    return detail::text(postflight_checkpoint_digest, handle());
  }

  // The object tree, see postflight_node.
  struct Nodes {
    const postflight_node* data = nullptr;
    std::size_t count = 0;
    const postflight_node* begin() const { return data; }
    const postflight_node* end() const { return data + count; }
    const postflight_node& operator[](std::size_t i) const { return data[i]; }
  };
  Nodes nodes() const {
    Nodes found;
    detail::call(postflight_checkpoint_nodes, handle(), &found.data,
                 &found.count);
    return found;
  }
  std::string path_of(std::uint32_t node) const {
    return detail::text(postflight_checkpoint_path, handle(), node);
  }

  std::size_t tensor_count() const {
    return postflight_checkpoint_tensor_count(handle());
  }
  postflight_tensor tensor(std::uint32_t index) const {
    postflight_tensor found;
    detail::call(postflight_checkpoint_tensor, handle(), index, &found);
    return found;
  }
  // The index of the tensor with this path: model.layers.0.weight.
  std::uint32_t find(const std::string& path) const {
    std::uint32_t node = 0;
    detail::call(postflight_checkpoint_find, handle(), path.c_str(), &node);
    const postflight_node& found = nodes()[node];
    if (found.kind != POSTFLIGHT_TENSOR)
      throw Error(POSTFLIGHT_USAGE, path + " is not a tensor");
    return found.index;
  }

  // Row-major, little-endian bytes of the true values.
  void read(std::uint32_t index, void* to, std::size_t size,
            std::uint32_t flags = 0) const {
    detail::call(postflight_tensor_read, handle(), index, flags, to, size);
  }
  std::vector<unsigned char> read(std::uint32_t index,
                                  std::uint32_t flags = 0) const {
    std::vector<unsigned char> bytes(tensor(index).bytes);
    read(index, bytes.data(), bytes.size(), flags);
    return bytes;
  }
  void read(const std::vector<postflight_target>& targets,
            std::uint32_t flags = 0) const {
    detail::call(postflight_tensors_read, handle(), targets.data(),
                 targets.size(), flags);
  }

  struct Slice {
    std::vector<std::int64_t> shape;
    std::vector<unsigned char> bytes;
  };
  // "[0:128, :, 3]" as numpy reads it.
  Slice read_slice(std::uint32_t index, const std::string& slice,
                   std::uint32_t flags = 0) const {
    auto dimensions = tensor(index).dimensions;
    Slice part;
    part.shape.resize(dimensions);
    std::size_t size = 0;
    detail::call(postflight_tensor_read_slice, handle(), index, slice.c_str(),
                 flags, part.shape.data(), &dimensions,
                 static_cast<void*>(nullptr), &size);
    part.bytes.resize(size);
    part.shape.resize(dimensions);
    if (size > 0)
      detail::call(postflight_tensor_read_slice, handle(), index, slice.c_str(),
                   flags, part.shape.data(), &dimensions,
                   static_cast<void*>(part.bytes.data()), &size);
    return part;
  }

  // Fails if the bytes need a conversion. See postflight_tensor_view() for
  // what happens if the file is truncated.
  View view(std::uint32_t index) const {
    View found;
    detail::call(postflight_tensor_view, handle(), index, &found.data,
                 &found.size);
    return found;
  }

  const postflight_checkpoint* handle() const { return handle_.get(); }

 private:
  using Handle =
      detail::Owned<postflight_checkpoint, postflight_checkpoint_free>;
  explicit Checkpoint(Handle handle) : handle_(std::move(handle)) {}

  static postflight_context* of(const Context* context) {
    return context == nullptr ? nullptr : context->handle();
  }
  static postflight_open_options c_options(
      const OpenOptions& options, const std::vector<const char*>& plugins) {
    postflight_open_options given{};
    given.size = sizeof(given);
    given.rank = options.rank.value_or(0);
    given.has_rank = options.rank ? 1 : 0;
    given.plugins = plugins.data();
    given.plugin_count = plugins.size();
    given.key = detail::text_or_null(options.key);
    return given;
  }

  Handle handle_;
};

struct PlanOptions {
  std::string wanted = {};             // a template as JSON, or
  std::vector<std::string> keys = {};  // globs; none: everything
  std::string slice = {};
  std::string map_location = {};
  bool skip_unreadable = false;
};

// A partial read: what it selects, and then the bytes. May outlive the
// Checkpoint.
class Plan {
 public:
  explicit Plan(const Checkpoint& checkpoint, const PlanOptions& options = {}) {
    const std::vector<const char*> keys = detail::pointers(options.keys);
    postflight_plan_options given{};
    given.size = sizeof(given);
    given.wanted = detail::text_or_null(options.wanted);
    given.keys = keys.data();
    given.key_count = keys.size();
    given.slice = detail::text_or_null(options.slice);
    given.map_location = detail::text_or_null(options.map_location);
    given.skip_unreadable = options.skip_unreadable ? 1 : 0;
    handle_ = detail::make<postflight_plan, postflight_plan_free>(
        postflight_plan_new, checkpoint.handle(), &given);
  }

  std::size_t size() const { return postflight_plan_count(handle_.get()); }
  postflight_planned operator[](std::size_t place) const {
    postflight_planned planned;
    detail::call(postflight_plan_at, handle_.get(), place, &planned);
    return planned;
  }
  // The nodes of the values.
  std::vector<std::uint32_t> values() const {
    std::size_t count = 0;
    const std::uint32_t* const nodes =
        postflight_plan_values(handle_.get(), &count);
    return {nodes, nodes + count};
  }
  // postflight.ckpt.read/1, with the missing keys.
  std::string json() const {
    return detail::text(postflight_plan_json, handle_.get());
  }
  // To memory for each planned tensor, in order.
  void read(const std::vector<void*>& to, std::uint32_t flags = 0) const {
    detail::call(postflight_plan_read, handle_.get(), to.data(), to.size(),
                 flags);
  }

 private:
  detail::Owned<postflight_plan, postflight_plan_free> handle_;
};

// The verdict on a file's pickles: whether loading it would run code.
struct PickleVerdict {
  bool safe = false;
  std::string json = {};  // postflight.pickle/1
};

inline PickleVerdict inspect_pickles(const std::string& path) {
  int safe = 0;
  PickleVerdict verdict;
  verdict.json = detail::text(postflight_pickle_inspect,
                              static_cast<postflight_context*>(nullptr),
                              path.c_str(), &safe);
  verdict.safe = safe != 0;
  return verdict;
}

}  // namespace postflight

#endif
