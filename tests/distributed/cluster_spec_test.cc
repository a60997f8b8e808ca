// SPDX-License-Identifier: Apache-2.0
#include "distributed/protocol/cluster_spec.h"

#include <gmock/gmock.h>

#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::IsError;

constexpr auto kInvalid = StatusCode::kInvalidArgument;

TEST(ClusterSpecTest, AWrongSeparatorIsNoAddress) {
  EXPECT_THAT(ClusterSpec::Parse("ps=127.0.0.1:4301,worker=127.0.0.1:4302"),
              IsError(kInvalid,
                      "'worker=127.0.0.1:4302' of task 1 of job 'ps' is not an address; "
                      "wanted host:port, and ';' before the next job"));
  EXPECT_THAT(ClusterSpec::Parse("ps=a:1 b:2"), IsError(kInvalid, "is not an address"));
  EXPECT_THAT(ClusterSpec::Parse("ps=a:1/b"), IsError(kInvalid, "is not an address"));
  EXPECT_OK(ClusterSpec::Parse("ps=[::1]:4301;worker=host-1.example.org:4302,host_2:4303"));
}

TEST(ClusterSpecTest, ATargetHasAHostAndAPort) {
  EXPECT_EQ(*AddressOfTarget("grpc://127.0.0.1:4301"), "127.0.0.1:4301");
  EXPECT_THAT(
      AddressOfTarget("grpc://127.0.0.1"),
      IsError(kInvalid, "'grpc://127.0.0.1' names no host and port; wanted grpc://host:port"));
  for (const char* const target :
       {"127.0.0.1:4301", "http://127.0.0.1:4301", "grpc:/127.0.0.1:4301"}) {
    EXPECT_THAT(AddressOfTarget(target),
                IsError(kInvalid,
                        "is not a target; wanted grpc://host:port; did you mean "
                        "grpc://127.0.0.1:4301?"));
  }
  for (const char* const target : {"", "a", ":4301", "grpc:a:1", "a:99999", "/a:1/"}) {
    EXPECT_EQ(Message(AddressOfTarget(target).status()),
              StrCat("'", target, "' is not a target; wanted grpc://host:port"));
  }
}

}  // namespace
}  // namespace tenon
