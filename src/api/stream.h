#pragma once

// Encoding and decoding streams: what the command, the C interface and Python
// call alike.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/context.h"
#include "base/error.h"
#include "stream/extension/registry.h"
#include "stream/extension/transfer.h"

namespace postflight {

struct StreamRequest {
  bool encode = true;  // else decode
  // As TransformChain applies them, each as parse_transforms() reads it.
  std::vector<std::string> transforms = {};
  std::string input = "-";   // "-": standard input
  std::string output = "-";  // "-": standard output; a file appears complete
  Existing existing = Existing::kRefuse;
  std::string key_file = {};  // empty: the key is in POSTFLIGHT_KEY, or none
  std::vector<std::string> plugins = {};  // see load_plugin()
  std::size_t buffer_size = kStreamBuffer;
  // Decoding: if the input is damaged, write a file with what precedes the
  // damage. Standard output has that anyway.
  bool salvage = false;
};

// The built-in transforms and those of plug-ins.
Result<ExtensionRegistry> stream_transforms(
    const std::vector<std::string>& plugins);

// Damage of encoded data is part of the outcome. `progress` is as in
// TransferOptions.
Result<StreamOutcome> run_stream(
    const StreamRequest& request, const Context& context,
    const std::function<void(std::uint64_t bytes, std::uint64_t total)>&
        progress);

}  // namespace postflight
