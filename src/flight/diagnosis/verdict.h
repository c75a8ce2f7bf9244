#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "flight/model/id.h"

namespace postflight {

// What happened to a job.
enum class VerdictKind : std::uint8_t {
  kHealthy,
  kInconclusive,
  kNeverJoined,
  kNoDump,
  kTypeMismatch,
  kSizeMismatch,
  kDtypeMismatch,
  kOrderMismatch,
  kPointToPoint,
  kDeviceStalled,
  kAllJoinedStuck,
  kStraggler,
};
// "never_joined"
std::string_view kind_name(VerdictKind kind);

enum class Confidence : std::uint8_t { kPossible, kLikely, kCertain };
std::string_view confidence_name(Confidence confidence);

// A record that the verdict rests on.
struct Evidence {
  Rank rank;
  std::optional<std::uint32_t> entry;  // nothing: what the rank has not
  std::string role;                    // "waiting", "last", "differs", ...
};

// How a rank stands at the end.
enum class Standing : std::uint8_t {
  kDone,
  kWaiting,
  kMissing,  // others wait for it, and it waits for nobody
  kMismatched,
  kStalled,
  kBehind,
  kNoDump,
  kUnknown,
};
std::string_view standing_name(Standing standing);

struct RankStanding {
  Rank rank;
  Standing standing = Standing::kDone;
  std::vector<Rank> waiting_for;  // directly
  // The entry that it waits in, or its last one.
  std::optional<std::uint32_t> entry;
};

struct Verdict {
  VerdictKind kind = VerdictKind::kHealthy;
  Confidence confidence = Confidence::kCertain;
  std::vector<Rank> culprits;
  std::string summary;  // a sentence
  // The operation that it is about, where it is about one.
  std::optional<GroupId> group;
  std::string operation;
  std::optional<std::int64_t> sequence;
  std::vector<Evidence> evidence;
  std::vector<RankStanding> ranks;  // one for each of Job::world()
  std::vector<Finding> findings;    // further ones, and those of the job
  bool pending = false;             // whether anything was still under way

  bool healthy() const { return kind == VerdictKind::kHealthy; }
};

}  // namespace postflight
