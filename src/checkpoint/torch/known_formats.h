#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "pickle/audit/safety.h"

namespace postflight {

class Value;

// A format that holds no pickles, and what in such a file could still run code
// or was not looked into.
struct KnownFormat {
  std::string_view title;  // "a safetensors file"
  std::vector<Reason> doubts;
};

// The formats that known_format() knows, each by what in it could run code.

inline Reason doubt(std::string kind, std::string message) {
  return {Safety::kUnknown, std::move(kind), std::move(message), ""};
}

// Its chat templates; what follows its tensors.
KnownFormat gguf_file(Bytes bytes);

// Where the files with its weights are. Empty if it is no ONNX model.
std::optional<KnownFormat> onnx_model(Bytes bytes);

// An HDF5 file, searched for layers whose code is in it.
KnownFormat keras_weights(Bytes bytes);
// What Keras would import to make its layers.
KnownFormat keras_configuration(const Value& root);
bool has_code_of_its_own(std::string_view layer);

// JSON that is the configuration of a model or tokenizer; empty if it is not,
// or not of a kind that can run code.
std::optional<KnownFormat> settings_in_json(Bytes bytes);
// A template or YAML, which only the name of a file tells.
std::optional<KnownFormat> settings_by_name(Bytes bytes, std::string_view name);

}  // namespace postflight
