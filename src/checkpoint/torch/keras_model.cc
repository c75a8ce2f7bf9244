// Keras makes layers from their configuration: it imports a module by its name
// and calls what it finds there with arguments from the file. Of its own
// modules some have functions that fetch files, and some layers load code.

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/ascii.h"
#include "checkpoint/torch/known_formats.h"
#include "pickle/names/known_names.h"
#include "pickle/value.h"

namespace postflight {
namespace {

constexpr std::string_view kLoadsCode =
    "Lambda __lambda__ TFSMLayer TorchModuleWrapper JaxLayer FlaxLayer";

// Whether text that may contain a configuration has a layer whose code is in
// the file, or that loads code from another.
bool has_code_layer(std::string_view text) {
  constexpr std::string_view kKey = "\"class_name\"";
  for (std::size_t at = text.find(kKey); at != text.npos;
       at = text.find(kKey, at + 1)) {
    std::size_t next = text.find_first_not_of(kSpaces, at + kKey.size());
    if (next == text.npos || text[next] != ':')
      continue;
    next = text.find_first_not_of(kSpaces, next + 1);
    if (next == text.npos || text[next] != '"')
      continue;
    const std::size_t end = text.find('"', next + 1);
    if (end != text.npos && end > next + 1 &&
        has_word(kLoadsCode, text.substr(next + 1, end - next - 1)))
      return true;
  }
  return false;
}

Reason code_layer(std::string_view layer) {
  return {Safety::kRunsCode, "keras_lambda",
          fmt::format("loading it with Keras would run the code of a {} layer",
                      layer == "__lambda__" ? "Lambda" : layer),
          ""};
}

// Modules of Keras whose classes and functions only compute.
bool only_computes(std::string_view module) {
  constexpr std::string_view kParts =
      "layers models initializers optimizers losses metrics regularizers "
      "constraints activations dtype_policies random ops quantizers engine "
      "applications preprocessing";
  for (const std::string_view prefix :
       {"keras.src.", "keras.api.", "tf_keras.src.", "tf_keras.", "keras."}) {
    if (!module.starts_with(prefix))
      continue;
    module.remove_prefix(prefix.size());
    return has_word(kParts, module.substr(0, module.find('.')));
  }
  return module.empty() || module == "keras" || module == "tf_keras" ||
         module == "builtins";
}

void judge_class(const Value& value, std::vector<Reason>& doubts) {
  const auto text = [&value](std::string_view key) {
    const Value* const found = value.find(key);
    return found != nullptr && found->is(Kind::kString) ? found->text()
                                                        : std::string_view();
  };
  const std::string_view layer = text("class_name");
  if (has_code_of_its_own(layer))
    doubts.push_back(code_layer(layer));
  const std::string_view module = text("module");
  if (!layer.empty() && !only_computes(module)) {
    constexpr std::size_t kShown = 200;
    doubts.push_back({Safety::kRunsCode, "keras_module",
                      fmt::format("loading it with Keras would import {}",
                                  module.substr(0, kShown)),
                      ""});
  }
  // A layer that looks words up reads them from the file that this names.
  if (!text("vocabulary").empty())
    doubts.push_back(doubt("keras_vocabulary",
                           "loading it with Keras would read the file of a "
                           "vocabulary that it names"));
}

}  // namespace

bool has_code_of_its_own(std::string_view layer) {
  return !layer.empty() && has_word(kLoadsCode, layer);
}

KnownFormat keras_configuration(const Value& root) {
  constexpr std::size_t kMostDoubts = 100;
  KnownFormat format{"the configuration of a Keras model", {}};
  std::vector<const Value*> left = {&root};
  while (!left.empty() && format.doubts.size() < kMostDoubts) {
    const Value& value = *left.back();
    left.pop_back();
    if (value.is(Kind::kList))
      for (const Value& item : value.items())
        left.push_back(&item);
    if (!value.is(Kind::kDict))
      continue;
    judge_class(value, format.doubts);
    for (const Pair& pair : value.pairs())
      left.push_back(&pair.value);
  }
  return format;
}

KnownFormat keras_weights(Bytes bytes) {
  KnownFormat format{"an HDF5 file, which holds no pickles", {}};
  if (has_code_layer(as_text(bytes)))
    format.doubts.push_back(code_layer("Lambda"));
  else
    format.doubts.push_back(
        doubt("hdf5",
              "an HDF5 file: it was searched for Lambda layers of "
              "Keras, but not read"));
  return format;
}

}  // namespace postflight
