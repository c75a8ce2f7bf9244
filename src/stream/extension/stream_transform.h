#pragma once

#include "stream/filter.h"
#include "stream/filter_source.h"
#include "stream/sink.h"
#include "stream/source.h"

#include <functional>
#include <memory>
#include <string>

namespace postflight {

class StreamTransform;

// Something that a checkpoint was written with and that its reader needs to
// know about, told by a descriptor. For now all of them transform streams.
class Extension {
 public:
  virtual ~Extension() = default;

  virtual const std::string& descriptor() const = 0;
  virtual const StreamTransform* as_stream_transform() const = 0;
};

// Changes bytes on their way to the disk and back.
class StreamTransform final : public Extension {
 public:
  using MakeFilter = std::function<Result<std::unique_ptr<Filter>>()>;

  StreamTransform(std::string descriptor, MakeFilter make_encoder,
                  MakeFilter make_decoder);

  const std::string& descriptor() const override { return descriptor_; }
  const StreamTransform* as_stream_transform() const override { return this; }

  // What is written to the result reaches `below` encoded. `below` has to
  // outlive it; finishing it ends what was encoded and leaves `below` open.
  Result<std::unique_ptr<Sink>> transform_to(
      Sink& below, std::size_t buffer_size = kStreamBuffer) const;
  // Reads `below`, which has to outlive it, decoded.
  Result<std::unique_ptr<Source>> transform_from(
      Source& below, std::size_t buffer_size = kStreamBuffer) const;

 private:
  std::string descriptor_;
  MakeFilter make_encoder_;
  MakeFilter make_decoder_;
};

}  // namespace postflight
