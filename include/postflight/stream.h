// Transforms of streams, such as compression, for C++17 and later.

#ifndef POSTFLIGHT_STREAM_H
#define POSTFLIGHT_STREAM_H

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <postflight/context.h>
#include <postflight/postflight.h>
#include <postflight_transform.h>

namespace postflight {

// The transforms by name: those built in, and those that are added.
class Registry {
 public:
  Registry()
      : handle_(detail::make<postflight_registry, postflight_registry_free>(
            postflight_registry_new)) {}

  // Runs the code of the plug-in.
  void load(const std::string& path) {
    detail::call(postflight_registry_load, handle_.get(), path.c_str());
  }
  // `transform` outlives everything that is made with the registry.
  void add(const postflight_transform& transform) {
    detail::call(postflight_registry_add, handle_.get(), &transform);
  }
  std::string list() const {
    return detail::text(postflight_registry_list, handle());
  }

  const postflight_registry* handle() const { return handle_.get(); }

 private:
  detail::Owned<postflight_registry, postflight_registry_free> handle_;
};

// Transforms that data goes through, in the order of writing.
class Chain {
 public:
  Chain(const Registry& registry, const std::vector<std::string>& transforms,
        const std::string& key = {}) {
    const std::vector<const char*> names = detail::pointers(transforms);
    handle_ = detail::make<postflight_chain, postflight_chain_free>(
        postflight_chain_new, registry.handle(), names.data(), names.size(),
        detail::text_or_null(key));
  }

  // As a checkpoint stores them, a JSON array.
  std::string descriptors() const {
    return detail::text(postflight_chain_descriptors, handle());
  }

  std::string encode(std::string_view bytes) const;
  std::string decode(std::string_view bytes) const;

  const postflight_chain* handle() const { return handle_.get(); }

 private:
  detail::Owned<postflight_chain, postflight_chain_free> handle_;
};

// Encodes what is written to it and passes it on.
class Writer {
 public:
  // Writes all of it; false if that failed. It must not throw.
  using Function = std::function<bool(std::string_view bytes)>;

  Writer(const Chain& chain, Function function)
      : function_(std::make_unique<Function>(std::move(function))),
        handle_(detail::make<postflight_writer, postflight_writer_free>(
            postflight_writer_new, chain.handle(), &Writer::pass_on,
            static_cast<void*>(function_.get()))) {}

  void write(std::string_view bytes) {
    detail::call(postflight_writer_write, handle_.get(),
                 static_cast<const void*>(bytes.data()), bytes.size());
  }
  void flush() { detail::call(postflight_writer_flush, handle_.get()); }
  // Without it, readers find the data truncated.
  void finish() { detail::call(postflight_writer_finish, handle_.get()); }

 private:
  static int pass_on(void* user, const void* data, std::size_t size) {
    return (*static_cast<Function*>(user))(
               {static_cast<const char*>(data), size})
               ? 0
               : 1;
  }

  std::unique_ptr<Function> function_;
  detail::Owned<postflight_writer, postflight_writer_free> handle_;
};

// Decodes what it reads.
class Reader {
 public:
  // Reads up to `size` bytes, at least one: how many; 0 at the end; negative if
  // that failed. It must not throw.
  using Function = std::function<std::ptrdiff_t(char* to, std::size_t size)>;

  Reader(const Chain& chain, Function function)
      : function_(std::make_unique<Function>(std::move(function))),
        handle_(detail::make<postflight_reader, postflight_reader_free>(
            postflight_reader_new, chain.handle(), &Reader::fetch,
            static_cast<void*>(function_.get()))) {}

  // How many bytes; 0 only at the end.
  std::size_t read(void* to, std::size_t size) {
    std::size_t count = 0;
    detail::call(postflight_reader_read, handle_.get(), to, size, &count);
    return count;
  }

 private:
  static std::ptrdiff_t fetch(void* user, void* to, std::size_t size) {
    return (*static_cast<Function*>(user))(static_cast<char*>(to), size);
  }

  std::unique_ptr<Function> function_;
  detail::Owned<postflight_reader, postflight_reader_free> handle_;
};

inline std::string Chain::encode(std::string_view bytes) const {
  std::string encoded;
  Writer writer(*this, [&encoded](std::string_view piece) {
    encoded.append(piece);
    return true;
  });
  writer.write(bytes);
  writer.finish();
  return encoded;
}

inline std::string Chain::decode(std::string_view bytes) const {
  Reader reader(*this, [&bytes](char* to, std::size_t size) {
    const std::size_t count = bytes.copy(to, size);
    bytes.remove_prefix(count);
    return static_cast<std::ptrdiff_t>(count);
  });
  std::string decoded;
  char piece[16384];
  while (const std::size_t count = reader.read(piece, sizeof(piece)))
    decoded.append(piece, count);
  return decoded;
}

}  // namespace postflight

#endif
