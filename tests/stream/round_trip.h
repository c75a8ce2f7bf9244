#pragma once

#include "base/test_files.h"
#include "stream/codec/built_in.h"
#include "stream/cut_source.h"
#include "stream/extension/transform_chain.h"
#include "stream/memory_stream.h"

#include <string>
#include <string_view>
#include <vector>

namespace postflight {

// The requests of several --with.
inline std::vector<TransformRequest> with(
    const std::vector<std::string>& texts) {
  std::vector<TransformRequest> all;
  for (const std::string& text : texts)
    for (TransformRequest& request : must(parse_transforms(text)))
      all.push_back(std::move(request));
  return all;
}

inline const SecretKey& test_key() {
  static const SecretKey key = must(SecretKey::from_hex(
      "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"));
  return key;
}

inline TransformChain chain(const std::vector<std::string>& texts,
                            TransformSettings settings = {}) {
  static const ExtensionRegistry registry = built_in_registry();
  if (settings.key == nullptr)
    settings.key = &test_key();
  return must(TransformChain::make(registry, with(texts), settings));
}

// Writes `text` in pieces of the sizes told, over and over, with a flush where
// the size is 0.
inline std::string encoded(const TransformChain& transforms,
                           std::string_view text,
                           const std::vector<std::size_t>& sizes = {1 << 20},
                           std::size_t buffer = kStreamBuffer) {
  MemorySink below;
  const std::unique_ptr<Sink> sink =
      must(transforms.transform_to(below, buffer));
  for (std::size_t i = 0; !text.empty(); ++i) {
    const std::size_t size = std::min(sizes[i % sizes.size()], text.size());
    if (size == 0) {
      EXPECT_EQ(message_of(sink->flush()), "no error");
    }
    EXPECT_EQ(message_of(sink->write(as_bytes(text.substr(0, size)))),
              "no error");
    text.remove_prefix(size);
  }
  EXPECT_EQ(message_of(sink->finish()), "no error");
  return below.take();
}

inline Drained decoded(const TransformChain& transforms, std::string_view data,
                       const std::vector<std::size_t>& sizes = {1 << 20},
                       std::size_t buffer = kStreamBuffer,
                       std::size_t piece = 4096) {
  CutSource below(data, sizes);
  const std::unique_ptr<Source> source =
      must(transforms.transform_from(below, buffer));
  return drain(*source, piece);
}

// Read where it lies, into room enough for all of it.
inline Drained decoded_whole(const TransformChain& transforms,
                             std::string_view data) {
  MemorySource below(as_bytes(data));
  const std::unique_ptr<Source> source = must(transforms.transform_from(below));
  return drain(*source, 1 << 20);
}

}  // namespace postflight
