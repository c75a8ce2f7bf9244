#include "flight/model/operation.h"

#include <gtest/gtest.h>

namespace postflight {
namespace {

TEST(Operation, TakesNamesApart) {
  const Operation send = parse_operation("nccl:send 0->13");
  EXPECT_EQ(send.backend, "nccl");
  EXPECT_EQ(send.name, "send");
  EXPECT_EQ(send.kind, OperationKind::kSend);
  EXPECT_EQ(send.source, 0);
  EXPECT_EQ(send.destination, 13);
  const Operation receive = parse_operation("xccl:recv 13<-0");
  EXPECT_EQ(receive.kind, OperationKind::kReceive);
  EXPECT_EQ(receive.source, 0);
  EXPECT_EQ(receive.destination, 13);
}

TEST(Operation, KnowsVariantsAndTakesTheRestAsCollectives) {
  EXPECT_EQ(parse_operation("nccl:_all_gather_base").kind,
            OperationKind::kAllGather);
  EXPECT_EQ(parse_operation("gloo:barrier").kind, OperationKind::kBarrier);
  EXPECT_EQ(parse_operation("hccl:something_new").kind, OperationKind::kOther);
  EXPECT_EQ(parse_operation("hccl:something_new").name, "something_new");
  EXPECT_EQ(parse_operation("").name, "");
  EXPECT_EQ(parse_operation("nccl:send x->").destination, -1);
}

}  // namespace
}  // namespace postflight
