#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "checkpoint/model/dtype.h"
#include "checkpoint/model/tensor.h"
#include "pickle/builder.h"

namespace postflight {

// A tensor of an exported program (.pt2), as the JSON beside its records
// describes it.
struct ExportedWeight {
  std::string_view name;    // "layers.0.weight"
  std::string_view record;  // "weight_0", in the folder of the JSON
  bool pickled = false;     // the record is itself what torch.save writes
  Dtype dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> stride;
  std::int64_t offset = 0;  // in elements
  TensorRole role = TensorRole::kBuffer;
  bool requires_grad = false;
  std::string_view device = "cpu";
};

// Reads model_weights_config.json or model_constants_config.json. Views are
// valid while `builder` lives.
Result<std::vector<ExportedWeight>> read_exported_weights(Bytes json,
                                                          Builder& builder);

}  // namespace postflight
