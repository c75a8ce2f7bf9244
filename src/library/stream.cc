#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "json/writer.h"
#include "library/boundary.h"
#include "report/stream_report.h"
#include "stream/codec/built_in.h"
#include "stream/extension/transform_chain.h"
#include "stream/extension/transform_plugin.h"

using namespace postflight;

// What was made with a registry or chain keeps it alive.
struct SharedRegistry {
  ExtensionRegistry registry = built_in_registry();
};

struct SharedChain {
  std::shared_ptr<const SharedRegistry> registry;
  std::optional<SecretKey> key = {};
  std::optional<TransformChain> chain = {};
};

struct postflight_registry {
  std::shared_ptr<SharedRegistry> shared;
};

struct postflight_chain {
  std::shared_ptr<const SharedChain> shared;
};

namespace postflight {
namespace {

// Ends at the caller's function, or else in memory from which he takes it.
class CallerSink final : public Sink {
 public:
  CallerSink(postflight_write_function function, void* user)
      : function_(function), user_(user) {}

  Result<> write(Bytes bytes) override {
    if (function_ == nullptr)
      kept_.insert(kept_.end(), bytes.begin(), bytes.end());
    else if (!bytes.empty() &&
             function_(user_, bytes.data(), bytes.size()) != 0)
      return fail(ErrorKind::kIo, "the function that writes has failed");
    position_ += bytes.size();
    return {};
  }
  // Valid until the next call.
  Bytes take() {
    taken_.clear();
    std::swap(taken_, kept_);
    return taken_;
  }
  Result<> flush() override { return {}; }
  std::uint64_t tell() const override { return position_; }

 private:
  postflight_write_function function_;
  void* user_;
  std::uint64_t position_ = 0;
  std::vector<std::byte> kept_;
  std::vector<std::byte> taken_;
};

// Begins at the caller's function, or else with what he feeds it.
class CallerSource final : public Source {
 public:
  CallerSource(postflight_read_function function, void* user)
      : function_(function), user_(user) {}

  Result<Taken> read(std::span<std::byte> to) override {
    if (function_ == nullptr)
      return from_memory(to);
    const std::ptrdiff_t count = function_(user_, to.data(), to.size());
    if (count < 0 || static_cast<std::size_t>(count) > to.size())
      return fail(ErrorKind::kIo, "the function that reads has failed");
    position_ += static_cast<std::uint64_t>(count);
    return Taken{static_cast<std::size_t>(count), count == 0};
  }
  std::uint64_t tell() const override { return position_; }

  Result<> feed(Bytes bytes) {
    if (function_ != nullptr)
      return fail(ErrorKind::kUsage, "the reader has a function to read with");
    if (fed_end_)
      return fail(ErrorKind::kUsage, "the reader was told of the end already");
    fed_end_ = bytes.empty();
    fed_.erase(fed_.begin(), fed_.begin() + static_cast<std::ptrdiff_t>(at_));
    at_ = 0;
    fed_.insert(fed_.end(), bytes.begin(), bytes.end());
    return {};
  }
  bool is_hungry() const {
    return function_ == nullptr && !fed_end_ && at_ == fed_.size();
  }

 private:
  Taken from_memory(std::span<std::byte> to) {
    const std::size_t count = std::min(to.size(), fed_.size() - at_);
    copy_bytes(Bytes(fed_).subspan(at_, count), to);
    at_ += count;
    position_ += count;
    return {count, count == 0 && fed_end_};
  }

  postflight_read_function function_;
  void* user_;
  std::uint64_t position_ = 0;
  std::vector<std::byte> fed_;
  std::size_t at_ = 0;  // in it
  bool fed_end_ = false;
};

}  // namespace
}  // namespace postflight

struct postflight_writer {
  std::shared_ptr<const SharedChain> shared;
  CallerSink below;
  std::unique_ptr<Sink> sink = {};
};

struct postflight_reader {
  std::shared_ptr<const SharedChain> shared;
  CallerSource below;
  std::unique_ptr<Source> source = {};
};

postflight_status postflight_registry_new(postflight_registry** registry,
                                          postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    hand_out(
        from_members<postflight_registry>(std::make_shared<SharedRegistry>()),
        registry);
    return {};
  });
}

void postflight_registry_free(postflight_registry* registry) {
  delete registry;
}

postflight_status postflight_registry_load(postflight_registry* registry,
                                           const char* path,
                                           postflight_error** error) {
  return guarded(error,
                 [&] { return load_plugin(path, registry->shared->registry); });
}

postflight_status postflight_registry_add(postflight_registry* registry,
                                          const postflight_transform* transform,
                                          postflight_error** error) {
  return guarded(error, [&] {
    return add_transform(*transform, "this program",
                         registry->shared->registry);
  });
}

postflight_status postflight_registry_list(const postflight_registry* registry,
                                           postflight_text** json,
                                           postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    hand_out(written([&](Output& out) {
               write_transforms_json(registry->shared->registry.types(), out);
             }),
             json);
    return {};
  });
}

postflight_status postflight_chain_new(const postflight_registry* registry,
                                       const char* const* transforms,
                                       size_t count, const char* key,
                                       postflight_chain** chain,
                                       postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    auto made = shared_from_members<SharedChain>(registry->shared);
    if (key != nullptr)
      made->key.emplace(TRY(SecretKey::from_hex(key)));
    std::vector<TransformRequest> requests;
    for (std::size_t i = 0; i < count; ++i)
      for (TransformRequest& request : TRY(parse_transforms(transforms[i])))
        requests.push_back(std::move(request));
    made->chain.emplace(
        TRY(TransformChain::make(made->registry->registry, requests,
                                 {.key = made->key ? &*made->key : nullptr})));
    hand_out(from_members<postflight_chain>(std::move(made)), chain);
    return {};
  });
}

void postflight_chain_free(postflight_chain* chain) {
  delete chain;
}

postflight_status postflight_chain_descriptors(const postflight_chain* chain,
                                               postflight_text** json,
                                               postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    hand_out(json_text([&](JsonWriter& writer) {
               writer.array();
               for (const std::string& descriptor :
                    chain->shared->chain->descriptors())
                 writer.value(std::string_view(descriptor));
               writer.end();
             }),
             json);
    return {};
  });
}

postflight_status postflight_writer_new(const postflight_chain* chain,
                                        postflight_write_function function,
                                        void* user, postflight_writer** writer,
                                        postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    auto made = from_members<postflight_writer>(chain->shared,
                                                CallerSink(function, user));
    made->sink = TRY(made->shared->chain->transform_to(made->below));
    hand_out(std::move(made), writer);
    return {};
  });
}

postflight_status postflight_writer_write(postflight_writer* writer,
                                          const void* data, size_t size,
                                          postflight_error** error) {
  return guarded(error, [&] {
    return writer->sink->write({static_cast<const std::byte*>(data), size});
  });
}

postflight_status postflight_writer_flush(postflight_writer* writer,
                                          postflight_error** error) {
  return guarded(error, [&] { return writer->sink->flush(); });
}

postflight_status postflight_writer_finish(postflight_writer* writer,
                                           postflight_error** error) {
  return guarded(error, [&] { return writer->sink->finish(); });
}

void postflight_writer_take(postflight_writer* writer, const void** data,
                            size_t* size) {
  const Bytes taken = writer->below.take();
  *data = taken.data();
  *size = taken.size();
}

void postflight_writer_free(postflight_writer* writer) {
  delete writer;
}

postflight_status postflight_reader_new(const postflight_chain* chain,
                                        postflight_read_function function,
                                        void* user, postflight_reader** reader,
                                        postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    auto made = from_members<postflight_reader>(chain->shared,
                                                CallerSource(function, user));
    made->source = TRY(made->shared->chain->transform_from(made->below));
    hand_out(std::move(made), reader);
    return {};
  });
}

postflight_status postflight_reader_read(postflight_reader* reader, void* to,
                                         size_t size, size_t* count,
                                         postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    *count =
        size == 0
            ? 0
            : TRY(reader->source->read({static_cast<std::byte*>(to), size}))
                  .count;
    return {};
  });
}

postflight_status postflight_reader_feed(postflight_reader* reader,
                                         const void* data, size_t size,
                                         postflight_error** error) {
  return guarded(error, [&] {
    return reader->below.feed({static_cast<const std::byte*>(data), size});
  });
}

int postflight_reader_is_hungry(const postflight_reader* reader) {
  return reader->below.is_hungry() ? 1 : 0;
}

void postflight_reader_free(postflight_reader* reader) {
  delete reader;
}
