#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/context.h"
#include "base/error.h"
#include "pickle/audit/safety.h"

namespace postflight {

// Names that loading may import and call though they are not known to be
// harmless: "jobcode.Config", or "jobcode.*" for all of a module and those
// below it. What is known to be dangerous stays so.
struct ScanPolicy {
  std::vector<std::string> allowed;

  bool allows(std::string_view name) const;
};

// Reads {"allow": ["module.name", ...]}.
Result<ScanPolicy> read_policy(Bytes json);

// What is known of one file after a scan.
struct ScannedFile {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
  // Empty if it is of a kind that has no pickles and no tensors: source, text.
  std::optional<SafetyVerdict> verdict = {};
  std::string error = {};  // why it could not be read
};

// The files at these paths, and those in folders and the folders in them,
// sorted. Links in folders are not followed.
Result<std::vector<std::filesystem::path>> files_below(
    std::span<const std::string> paths);

// Scans files on several threads, and passes them on in order.
using ScanSink = std::function<void(const ScannedFile& file)>;
Result<> scan_files(std::span<const std::filesystem::path> files,
                    const ScanPolicy& policy, const Context& context,
                    const ScanSink& sink);

}  // namespace postflight
