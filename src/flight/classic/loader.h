#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/context.h"
#include "base/error.h"
#include "flight/model/job.h"
#include "flight/model/job_loader.h"

namespace postflight {

struct ClassicLoadOptions {
  // The text before the rank in the files' names; inferred if not given.
  std::optional<std::string> prefix = {};
  LoadOptions load = {};
};

struct ClassicInput {
  Job job;
  std::uint64_t files = 0;
  // What all names begin with, if it was inferred.
  std::optional<std::string> inferred_prefix;
};

// Reads the dumps of a folder by torchfrtrace's rules for names: all files
// whose name has the prefix, a number behind it. Where its rule finds no
// prefix, or more than one, ranks are taken from the names as elsewhere.
// The errors are torchfrtrace's sentences.
Result<ClassicInput> load_classic(const std::string& folder,
                                  const ClassicLoadOptions& options,
                                  const Context& context);

// The one text that all numbered names have before their number; nothing if
// there is none, or more than one.
std::optional<std::string> common_prefix(
    const std::vector<std::string_view>& names);

}  // namespace postflight
