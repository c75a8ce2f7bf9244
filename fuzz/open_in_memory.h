#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/model/checkpoint.h"
#include "checkpoint/tensor/digest.h"
#include "checkpoint/verification/verification.h"

namespace postflight {

inline OpenOptions fuzz_options() {
  return {.context = {.limits = {.max_inflated_bytes = 1 << 20,
                                 .max_materialised_bytes = 1 << 20},
                      .threads = 1}};
}

// Inspects all of a checkpoint as the commands do.
inline void inspect(const Result<Checkpoint>& checkpoint) {
  if (!checkpoint)
    return;
  std::vector<std::uint32_t> tensors;
  for (std::uint32_t i = 0; i < checkpoint->nodes().size(); ++i) {
    (void)checkpoint->path_of(i);
    if (checkpoint->nodes()[i].kind == NodeKind::kTensor)
      tensors.push_back(i);
  }
  if (!digest_tensors(*checkpoint, tensors,
                      [](std::uint32_t, const Result<std::string>&) {}))
    __builtin_trap();
  verify(*checkpoint);
}

// Opens the input as a checkpoint in a file.
inline void open_in_memory(const std::uint8_t* data, std::size_t size) {
  inspect(Checkpoint::open(std::as_bytes(std::span(data, size)), "input",
                           fuzz_options()));
}

}  // namespace postflight
