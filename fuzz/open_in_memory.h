#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "checkpoint/model/checkpoint.h"
#include "checkpoint/tensor/digest.h"
#include "checkpoint/verification/verification.h"

namespace postflight {

// Opens the input as a checkpoint through an in-memory file and inspects all of
// it as the commands do.
inline void open_in_memory(const std::uint8_t* data, std::size_t size) {
  const Descriptor file(::memfd_create("fuzz", MFD_CLOEXEC));
  if (!file.is_open() ||
      ::write(file.number(), data, size) != static_cast<ssize_t>(size))
    return;
  const Limits limits{.max_inflated_bytes = 1 << 20,
                      .max_materialised_bytes = 1 << 20};
  const Result<Checkpoint> checkpoint = Checkpoint::open(
      "/proc/self/fd/" + std::to_string(file.number()), {.limits = limits});
  if (!checkpoint)
    return;
  std::vector<std::uint32_t> tensors;
  for (std::uint32_t i = 0; i < checkpoint->nodes().size(); ++i) {
    (void)checkpoint->path_of(i);
    if (checkpoint->nodes()[i].kind == NodeKind::kTensor)
      tensors.push_back(i);
  }
  if (!digest_tensors(*checkpoint, tensors, {.threads = 1}, limits,
                      [](std::uint32_t, const Result<std::string>&) {}))
    __builtin_trap();
  verify(*checkpoint, {.threads = 1});
}

}  // namespace postflight
