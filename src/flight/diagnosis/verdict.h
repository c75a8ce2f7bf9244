#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "flight/model/id.h"

namespace postflight {

// What happened to a job. Everything that depends on the kind alone is in the
// table in verdict.cc.
enum class VerdictKind : std::uint8_t {
  kHealthy,
  kInProgress,
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
  kCount,  // the number of kinds
};

// The state of a rank at the end, in the order in which reports list them.
enum class RankState : std::uint8_t {
  kMissing,  // others wait for it, and it waits for nobody
  kMismatched,
  kStalled,
  kNoDump,
  kBehind,
  kUnknown,
  kWaiting,
  kDone,
};
std::string_view rank_state_name(RankState state);

// When a verdict calls for action, and so makes the program exit with 1.
enum class Action : std::uint8_t { kNever, kIfStrict, kIfPending, kAlways };

// A row of the table of kinds.
struct VerdictTraits {
  VerdictKind kind;
  std::string_view name;      // in JSON: "never_joined"
  std::string_view headline;  // the first word of the report: "HANG"
  Severity severity;
  RankState culprits;           // the state of the ranks at fault
  bool tensors_differ = false;  // they passed other tensors than the rest
  Action action = Action::kAlways;
  std::string_view advice;  // a sentence; empty where there is none
};
const VerdictTraits& traits(VerdictKind kind);
inline std::string_view kind_name(VerdictKind kind) {
  return traits(kind).name;
}

enum class Confidence : std::uint8_t { kPossible, kLikely, kCertain };
std::string_view confidence_name(Confidence confidence);

// Why an entry is evidence.
enum class EvidenceRole : std::uint8_t {
  kWaiting,    // it waits for the ranks at fault
  kLast,       // the last that a rank at fault recorded
  kNoEntries,  // a rank at fault recorded none
  kDiffers,    // its arguments differ from those of the majority
  kMajority,
  kReported,  // what a witness other than the dumps says of it
};
std::string_view role_name(EvidenceRole role);

// Who says so.
enum class Witness : std::uint8_t { kDump, kLog, kHosts, kStacks, kSummary };
std::string_view witness_name(Witness witness);

// A record that the verdict rests on.
struct Evidence {
  Rank rank;
  std::optional<std::uint32_t> entry;  // nothing for kNoEntries and kReported
  EvidenceRole role = EvidenceRole::kWaiting;
  Witness witness = Witness::kDump;
  std::string message = {};  // in the words of the witness
  std::string where = {};    // "train.log:18"
};

struct RankStatus {
  Rank rank;
  RankState state = RankState::kDone;
  std::vector<Rank> waiting_for;  // directly
  // The entry that it waits in, or its last one.
  std::optional<std::uint32_t> entry;
  bool stale = false;  // others prove that its dump is older than theirs
};

// That a rank is at fault, as far as it can be proven by replaying the job with
// the smallest change of what that rank did: proof.h.
struct Proof {
  Rank culprit;
  std::string change;  // "joined all_reduce #45 of dp_0"
  bool alone = true;   // false: with the changes of the others at fault
  // The other ranks that wait and would not without that change, and those that
  // would still wait. Sorted.
  std::vector<Rank> released;
  std::vector<Rank> waiting;
  // Those that go on even if nothing is changed, though they wait.
  std::vector<Rank> unexplained;
  // The number at which those that are released wait next in that group.
  std::optional<std::int64_t> next;
  // Everybody goes on, and somebody would not without that change.
  bool supported = false;
};

// An independent second fault.
struct FurtherFault {
  VerdictKind kind = VerdictKind::kHealthy;
  std::vector<Rank> culprits;
  std::string summary;
  std::vector<Evidence> evidence;
};

struct Verdict {
  VerdictKind kind = VerdictKind::kHealthy;
  Confidence confidence = Confidence::kCertain;
  std::vector<Rank> culprits;
  std::string summary;   // a sentence without a full stop
  std::string headline;  // instead of that of the kind
  // The operation that it is about, if it is about one.
  std::optional<GroupId> group;
  std::string operation;
  std::optional<std::int64_t> sequence;
  std::vector<Evidence> evidence;
  std::vector<FurtherFault> also;
  std::vector<Proof> why;         // of the first culprits, in their order
  std::vector<RankStatus> ranks;  // one for each of Job::world()
  std::vector<Finding> findings;  // further ones, and those of the job
  bool pending = false;           // whether any operation was in progress

  bool healthy() const { return kind == VerdictKind::kHealthy; }
  // Whether what is pending may have been so for long.
  bool stands() const { return traits(kind).action > Action::kIfStrict; }
};

}  // namespace postflight
