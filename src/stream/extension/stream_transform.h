#pragma once

#include "stream/filter.h"
#include "stream/filter_stream.h"
#include "stream/sink.h"
#include "stream/source.h"

#include <functional>
#include <memory>
#include <string>

namespace postflight {

class StreamTransform;

// Something that a checkpoint was written with and that its reader needs,
// identified by a descriptor. All existing ones are stream transforms.
class Extension {
 public:
  virtual ~Extension() = default;

  virtual const std::string& descriptor() const = 0;
  virtual const StreamTransform* as_stream_transform() const = 0;
};

// Encodes bytes on their way to the disk and decodes them on the way back.
class StreamTransform final : public Extension {
 public:
  using MakeFilter = std::function<Result<std::unique_ptr<Filter>>()>;

  StreamTransform(std::string descriptor, MakeFilter make_encoder,
                  MakeFilter make_decoder);

  const std::string& descriptor() const override { return descriptor_; }
  const StreamTransform* as_stream_transform() const override { return this; }

  // A sink that writes to `below`, encoded. `below` must outlive it; finish()
  // ends the encoding and leaves `below` unfinished.
  Result<std::unique_ptr<Sink>> transform_to(
      Sink& below, std::size_t buffer_size = kStreamBuffer) const;
  // A source that decodes `below`, which must outlive it.
  Result<std::unique_ptr<Source>> transform_from(
      Source& below, std::size_t buffer_size = kStreamBuffer) const;

 private:
  std::string descriptor_;
  MakeFilter make_encoder_;
  MakeFilter make_decoder_;
};

}  // namespace postflight
