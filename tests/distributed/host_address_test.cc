// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/rpc/host_address.h"

#include <gtest/gtest.h>

#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::IsError;

TEST(HostAddressTest, NamesAndAddressesAreResolved) {
  for (const char* host : {"::1", "[::1]", "127.0.0.1"}) {
    auto found = ResolveHost(host);
    ASSERT_OK(found);
    ASSERT_EQ(found->size(), 1u) << host;
    HostAddress address = found->front();
    EXPECT_EQ(address.is_v6(), address.family() == AF_INET6);
    EXPECT_TRUE(address.IsLoopback());
    EXPECT_FALSE(address.IsAny());
    EXPECT_EQ(address.port(), 0);
    address.set_port(65535);
    EXPECT_EQ(address.port(), 65535);
    EXPECT_FALSE(address == found->front());
  }
  for (const char* host : {"::", "0.0.0.0"}) {
    auto found = ResolveHost(host);
    ASSERT_OK(found);
    EXPECT_TRUE(found->front().IsAny()) << host;
    EXPECT_TRUE(found->front() == HostAddress::Any(found->front().family()));
  }
  EXPECT_THAT(ResolveHost("no.such.host.invalid"), IsError(StatusCode::kUnavailable, ""));
}

TEST(IsLoopbackTest, TellsThisMachineFromOthers) {
  for (const char* address : {"127.0.0.1:1", "127.8.9.10:1", "localhost:1", "[::1]:1"}) {
    EXPECT_TRUE(IsLoopback(address)) << address;
  }
  for (const char* address : {"0.0.0.0:1", "10.0.0.1:1", "[::]:1", "no.such.host.invalid:1"}) {
    EXPECT_FALSE(IsLoopback(address)) << address;
  }
}

}  // namespace
}  // namespace tenon
