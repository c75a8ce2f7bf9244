#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/output.h"
#include "base/terminal.h"
#include "checkpoint/inspection.h"
#include "checkpoint/model/checkpoint.h"
#include "checkpoint/reader.h"
#include "checkpoint/verification/verification.h"
#include "json/writer.h"

namespace postflight {

// What a listing shows, already selected and sorted.
struct ListingOptions {
  std::vector<std::uint32_t> nodes = {};
  bool all = false;  // values too
  // What loading it would do, if that is known already.
  const SafetyVerdict* safety = nullptr;
};

// Sums over tensors; those that consist of their parts are only counted. A few
// bytes can be viewed as any number of tensors, so sums saturate.
struct TensorTotals {
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;

  void add(const Tensor& tensor);
};
TensorTotals totals_of(const Checkpoint& checkpoint,
                       std::span<const std::uint32_t> nodes);
// The same for each dtype, the one with most bytes first.
std::vector<std::pair<std::string_view, TensorTotals>> totals_by_dtype(
    const Checkpoint& checkpoint, std::span<const std::uint32_t> nodes);

// How many parameters a model has: elements of floating-point tensors, of tied
// ones once, without what an optimizer keeps and without running statistics.
// Empty for a folder of ranks, which may have the same ones.
std::optional<std::uint64_t> parameters_of(
    const Checkpoint& checkpoint, std::span<const std::uint32_t> nodes);

// The first node of each storage, and how many nodes there are.
struct StorageUse {
  std::uint32_t first = kNoIndex;
  std::uint32_t uses = 0;
};
std::vector<StorageUse> storage_uses(const Checkpoint& checkpoint);

// A line for each tensor: key, dtype, shape, size and remarks.
void write_listing(std::string_view name, const Checkpoint& checkpoint,
                   const ListingOptions& options, const Terminal& terminal,
                   Output& out);
// The same as one line of JSON, schema postflight.ckpt.ls/1.
void write_listing_json(std::string_view name, const Checkpoint& checkpoint,
                        const ListingOptions& options, Output& out);

// Totals by prefix, down to `depth` levels below the root: each prefix once,
// where its first tensor is.
void write_tree(std::string_view name, const Checkpoint& checkpoint,
                const ListingOptions& options, std::size_t depth,
                const Terminal& terminal, Output& out);

// Digests as they are computed: a line for each, as sha256sum writes it, or
// schema postflight.ckpt.digest/1.
class DigestReport {
 public:
  DigestReport(std::string_view name, const Checkpoint& checkpoint, bool json,
               Output& out);

  void add(std::uint32_t node, const Result<std::string>& digest);
  void finish(const Terminal& terminal);

  // Those of the checkpoint, and tensors that could not be read.
  const std::vector<Finding>& findings() const { return findings_; }

 private:
  const Checkpoint& checkpoint_;
  Output& out_;
  std::optional<JsonWriter> json_;
  std::vector<Finding> findings_;
};

// Values and tensors, one after the other; or schema postflight.ckpt.show/1.
class ShowReport {
 public:
  ShowReport(std::string_view name, const Checkpoint& checkpoint, bool json,
             Output& out);

  void add_value(std::uint32_t node);
  // A container, as the tree below it.
  void add_tree(std::uint32_t node);
  // Reads the elements that it shows.
  void add_tensor(std::uint32_t node, const Result<Inspection>& inspection);
  void finish(const Terminal& terminal);

  bool failed() const { return failed_; }  // to show something

 private:
  void begin_item();
  void write_tensor(std::uint32_t node, const Tensor& tensor,
                    const Inspection* inspection, std::string_view problem,
                    std::string_view text);
  void write_tensor_json(const Tensor& tensor, const Inspection* inspection,
                         std::string_view problem, std::string_view text);

  const Checkpoint& checkpoint_;
  Output& out_;
  std::optional<JsonWriter> json_;
  bool first_ = true;
  bool failed_ = false;
};

// What was read, and to where; or schema postflight.ckpt.read/1. A name is
// empty if nothing was written there.
struct ReadOutputs {
  std::string_view tensors = {};
  std::string_view values = {};
  bool sliced = false;  // so that records were not compared with their CRC
};
void write_read(const Checkpoint& checkpoint, const ReadPlan& plan,
                const ReadOutputs& outputs, const Terminal& terminal,
                Output& out);
void write_read_json(std::string_view name, const Checkpoint& checkpoint,
                     const ReadPlan& plan, Output& out);
// The same as a few lines, for a command whose output is the tensors.
std::vector<std::string> read_warnings(const Checkpoint& checkpoint,
                                       const ReadPlan& plan,
                                       bool values_left_out);

// Whether a checkpoint is whole; or schema postflight.ckpt.verify/1.
void write_verification(std::string_view name, const Checkpoint& checkpoint,
                        const Verification& found, const Terminal& terminal,
                        Output& out);
void write_verification_json(std::string_view name,
                             const Checkpoint& checkpoint,
                             const Verification& found, Output& out);

// What loading it in Python would do: "SAFE", and in lines of their own why it
// is not.
std::string safety_text(const SafetyVerdict& verdict, const Terminal& terminal);
void write_safety(const SafetyVerdict& verdict, const Terminal& terminal,
                  Output& out);
void write_safety_json(const SafetyVerdict& verdict, JsonWriter& json);

// A verdict on a checkpoint: WHOLE, ODD (only warnings), DAMAGED.
struct VerificationVerdict {
  std::string_view word;
  std::string_view name;  // in JSON
  Style style = Style::kGreen;
};
VerificationVerdict verdict_of(const Checkpoint& checkpoint,
                               const Verification& found);

// "torch.save archive, 2 tensors, 90 elements, 360 B".
std::string checkpoint_summary(const Checkpoint& checkpoint,
                               std::span<const std::uint32_t> nodes);
// "[3, 4]", or "[?]" if it is unknown.
std::string shape_text(const Tensor& tensor);
// A printed path, escaped; the root is (root).
std::string shown_path(const Checkpoint& checkpoint, std::uint32_t node);

// Members of a JSON object: "path", an array of keys, and "key", the path as
// printed; "dtype" and "shape"; "statistics".
void write_path(const Checkpoint& checkpoint, std::uint32_t node,
                JsonWriter& json);
void write_type(const Tensor& tensor, JsonWriter& json);
void write_statistics(const TensorStatistics& found, JsonWriter& json);

}  // namespace postflight
