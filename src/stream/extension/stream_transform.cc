#include "stream/extension/stream_transform.h"

#include "stream/filter_stream.h"

#include <utility>

namespace postflight {

StreamTransform::StreamTransform(std::string descriptor,
                                 MakeFilter make_encoder,
                                 MakeFilter make_decoder)
    : descriptor_(std::move(descriptor)),
      make_encoder_(std::move(make_encoder)),
      make_decoder_(std::move(make_decoder)) {}

Result<std::unique_ptr<Sink>> StreamTransform::transform_to(
    Sink& below, std::size_t buffer_size) const {
  return std::make_unique<FilterSink>(below, TRY(make_encoder_()), buffer_size);
}

Result<std::unique_ptr<Source>> StreamTransform::transform_from(
    Source& below, std::size_t buffer_size) const {
  return std::make_unique<FilterSource>(below, TRY(make_decoder_()),
                                        buffer_size);
}

}  // namespace postflight
