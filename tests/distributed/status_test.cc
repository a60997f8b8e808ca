// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/rpc/status.h"

#include <gtest/gtest.h>

#include "proto/master.pb.h"

namespace tenon {
namespace {

TEST(StatusTest, AMessageThatIsNotUtf8CanTravel) {
  EXPECT_EQ(WireMessage(InvalidArgument("größer 日本 \n")), "größer 日本 \n");
  const std::string text = WireMessage(InvalidArgument("cannot read '\xff\xc3'"));
  EXPECT_EQ(text, "cannot read '\\xff\\xc3'");
  RunStepResponse response, read;
  response.set_status_error_message(text);
  EXPECT_TRUE(read.ParseFromString(response.SerializeAsString()));
}

TEST(StatusTest, ALongMessageIsCut) {
  const grpc::Status status = ToGrpc(Internal(std::string(5000, 'x')));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_LT(status.error_message().size(), 3200u);
}

}  // namespace
}  // namespace tenon
