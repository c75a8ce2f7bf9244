#include "checkpoint/tensor/element_reader.h"

namespace postflight {

Result<> ElementReader::read(std::uint64_t offset, std::span<std::byte> to) {
  if (to.empty())
    return {};
  if (is_contiguous(tensor_) && tensor_.dtype.packed == 1) {
    Tensor part = tensor_;
    const std::int64_t count[] = {
        static_cast<std::int64_t>(to.size() / tensor_.dtype.size)};
    const std::int64_t step[] = {1};
    part.shape = count;
    part.stride = step;
    part.offset += offset / tensor_.dtype.size;
    part.is_slice = true;
    return reader_.read(part, to);
  }
  if (whole_.empty()) {
    whole_.resize(tensor_.bytes());
    TRY(reader_.read(tensor_, whole_));
  }
  copy_bytes(TRY(slice(whole_, offset, to.size())), to);
  return {};
}

}  // namespace postflight
