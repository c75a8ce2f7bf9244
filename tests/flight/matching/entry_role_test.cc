#include "flight/matching/entry_role.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "flight/job_maker.h"

namespace postflight {
namespace {

// "collective send>3 receive>3 messages_end": roles, and where batches end.
std::string roles_of(const std::vector<MadeEntry>& entries,
                     std::int64_t first_record = 0) {
  const Job job =
      JobMaker().group("0", {0, 1}).rank(0, entries, first_record).job();
  const EntryRoles roles = entry_roles(job, job.ranks[0], operations_of(job));
  std::string text;
  for (std::size_t i = 0; i < roles.roles.size(); ++i) {
    text += text.empty() ? "" : " ";
    text += role_name(roles.roles[i]);
    if (roles.ends[i] != EntryRoles::kNone)
      text += ">" + std::to_string(roles.ends[i]);
  }
  return text;
}

TEST(EntryRoles, TellsMessagesFromCollectives) {
  EXPECT_EQ(roles_of({{1},
                      {1, "nccl:send 0->1", kDone, 4, 1},
                      {1, "nccl:recv 0<-1", kDone, 4, 2},
                      {2}}),
            "collective send receive collective");
}

TEST(EntryRoles, TheEndOfABatchOfMessagesIsNoCollective) {
  EXPECT_EQ(roles_of({{2},
                      {2, "nccl:send 0->1", kDone, 4, 1},
                      {2, "nccl:recv 0<-1", kDone, 4, 1},
                      {2, "nccl:coalesced", kDone, 4, 1}}),
            "collective send>3 receive>3 messages_end");
}

TEST(EntryRoles, TheEndOfABatchOfCollectivesBelongsToIt) {
  EXPECT_EQ(roles_of({{3, "nccl:all_gather_into_tensor_coalesced"},
                      {3, "nccl:all_gather_into_tensor_coalesced"},
                      {3, "nccl:coalesced"}}),
            "collective>2 collective>2 collective_end");
}

TEST(EntryRoles, ABatchDoesNotReachBackOverAnotherNumber) {
  EXPECT_EQ(roles_of({{2, "nccl:send 0->1", kDone, 4, 1},
                      {2, "nccl:send 0->1", kDone, 4, 2},
                      {2, "nccl:coalesced", kDone, 4, 2}}),
            "send send>2 messages_end");
}

TEST(EntryRoles, AnEndAloneIsACollectiveIfItsNumberIsNew) {
  // As recorders before 2.7 write it.
  EXPECT_EQ(roles_of({{1}, {2, "nccl:coalesced"}}), "collective collective");
  EXPECT_EQ(roles_of({{1, "nccl:coalesced"}}), "collective");
  EXPECT_EQ(roles_of({{1}, {1, "nccl:coalesced", kDone, 4, 5}}),
            "collective other");
}

TEST(EntryRoles, AnEndAtTheBeginningOfARingMayBeOfTransfers) {
  EXPECT_EQ(roles_of({{3, "nccl:coalesced"}, {4}}, 7), "collective collective");
  EXPECT_EQ(roles_of({{3, "nccl:coalesced", kDone, 4, 2}, {4}}, 7),
            "other collective");
}

}  // namespace
}  // namespace postflight
