#pragma once

#include <cstdint>
#include <string_view>

namespace postflight {

// The table in checkpoint/sources.cc has a row for each, in this order.
enum class Format : std::uint8_t {
  kNumpy,     // .npy and .npz
  kTorchZip,  // torch.save since 1.6
  kTorchScript,
  kTorchPackage,
  kExported,  // .pt2
  kLegacy,    // torch.save from 0.1.10 to 1.5
  kTar,       // torch.save before 0.1.10
  kSafetensors,
  kGguf,
  kShards,       // a folder of files and an index of their tensors
  kRanks,        // a folder of checkpoint_0.pt, checkpoint_1.pt, ...
  kZero,         // DeepSpeed's, of partitions or universal
  kDistributed,  // torch.distributed.checkpoint
  kPickle,
};

// For people ("torch.save archive"), and a stable name for programs.
std::string_view format_title(Format format);
std::string_view format_name(Format format);

}  // namespace postflight
