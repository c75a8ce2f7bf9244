#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/finding.h"
#include "base/limits.h"
#include "checkpoint/torch/pickle_streams.h"
#include "pickle/audit/audit.h"
#include "pickle/audit/safety.h"
#include "pickle/machine.h"

namespace postflight {

// One pickle of a file, or what could be read of a truncated one.
struct LoadedPickle {
  std::string where;  // the record it is in; empty: the file itself
  Bytes bytes;        // of the pickle; if it is broken, up to the end
  std::optional<std::uint64_t> offset;  // in the file, unless inflated
  Pickle pickle;
  Audit audit;
  std::optional<std::string> error;  // why it could not be read to its end
};

// All pickles inside a file and what loading them would do. Views point into
// the file's bytes, which must outlive it.
class PickleFile {
 public:
  // Fails if the file is of no known format.
  static Result<PickleFile> read(Bytes file, const Limits& limits);

  std::vector<LoadedPickle> pickles;
  std::vector<Finding> findings;
  // What else keeps the file from being safe: what was not looked into, and
  // what another reader would take for something else.
  std::vector<Reason> doubts;
  // What it is if it has no pickles: "a NumPy file".
  std::string_view format;

  // The worst that loading any of them would do.
  Trust worst() const;
  bool runs_code() const { return worst() > Trust::kTorch; }
  // Whether everything could be read and nothing is damaged or ambiguous.
  bool intact() const;
  // All of it together.
  SafetyVerdict verdict() const;

 private:
  PickleFile(std::uint64_t file_size, const Limits& limits);

  void load_streams(PickleStreams streams, std::uint32_t depth);
  void load_stream(const PickleStreams& group, const PickleStream& stream,
                   bool is_script, std::uint32_t depth);
  // Adds what readers would run that go on behind a frame that ends too early.
  void look_behind_frames(Bytes bytes, Audit& audit);
  void stop_at(const std::string& where, std::uint64_t at);
  // Reads the pickles that arrays of objects consist of in joblib's files.
  void load_objects(const std::vector<Bytes>& objects, const std::string& where,
                    std::uint32_t depth);
  // Reads the pickles that calls of torch.storage._load_from_bytes hold.
  void load_nested(std::size_t parent, std::uint32_t depth);

  Limits limits_;
  Allowance allowance_;
  bool too_many_ = false;
  int behind_frames_ = 0;  // how often that was looked into
  // They own what the pickles' values point into. One machine for all, as there
  // can be a pickle in every other byte.
  std::vector<PickleStreams> streams_;
  std::deque<std::string> opcodes_;  // of joblib's pickles
  Machine machine_;
};

}  // namespace postflight
