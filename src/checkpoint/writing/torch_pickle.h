#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/model/checkpoint.h"
#include "pickle/builder.h"

namespace postflight {

// A tensor to be written, and as what.
struct OutputTensor {
  std::uint32_t node = 0;
  const Tensor* tensor = nullptr;
  Dtype dtype;       // as written
  std::string name;  // in a flat format

  std::uint64_t bytes() const;
};

// A pickle of torch.save, and the storages that it refers to by their number.
// Tensors that are the same elements of one storage share theirs.
struct TorchPickle {
  std::string bytes;
  std::vector<OutputTensor> storages;
};

// The nodes of a tree that are written: the tensors among `tensors`, values and
// containers among `kept` (by node; empty: all). Names that a new tree needs
// are those of the nodes. Fails with the name of what torch.save could not
// have written like this: tensors that consist of parts, objects with tensors
// inside.
Result<TorchPickle> pickle_tree(const Checkpoint& checkpoint,
                                std::span<const OutputTensor> tensors,
                                const std::vector<bool>& kept);

// A flat state dict: an OrderedDict of the tensors under their names.
Result<TorchPickle> pickle_state_dict(const Checkpoint& checkpoint,
                                      std::span<const OutputTensor> tensors);

// One tensor, contiguous, as the item of a distributed checkpoint.
Result<std::string> pickle_tensor(const Dtype& dtype,
                                  std::span<const std::int64_t> shape,
                                  bool requires_grad);
// One value, which has no tensor inside.
Result<std::string> pickle_value(const Value& value);

}  // namespace postflight
