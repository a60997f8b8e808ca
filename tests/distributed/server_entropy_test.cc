// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>

#include "core/base/entropy.h"
#include "distributed/protocol/server.h"
#include "ops/register.h"
#include "proto/master.pb.h"
#include "proto/worker.pb.h"
#include "tests/distributed/raw_client.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

/// 1, 2, 3, ...
class CountingEntropy final : public Entropy {
 public:
  uint64_t Next() override { return ++last_; }
  uint64_t last() const { return last_; }

 private:
  std::atomic<uint64_t> last_{0};
};

GetStatusResponse StatusOf(const Server& server) {
  testing::RawCaller caller(server.target());
  GetStatusResponse response;
  EXPECT_TRUE(
      caller.Call("/tensorflow.WorkerService/GetStatus", GetStatusRequest(), &response).ok());
  return response;
}

TEST(ServerEntropyTest, IncarnationsAndHandlesOfSessionsAreOfTheServersEntropy) {
  CountingEntropy entropy;
  const auto server = Server::Start({.port = 0, .entropy = &entropy}, AllOps());
  ASSERT_OK(server.status());
  EXPECT_EQ(StatusOf(**server).device_attributes(0).incarnation(), 1);

  const uint64_t before = entropy.last();
  testing::RawCaller caller((*server)->target());
  CreateSessionResponse session;
  ASSERT_TRUE(
      caller.Call("/tensorflow.MasterService/CreateSession", CreateSessionRequest(), &session)
          .ok());
  EXPECT_EQ(session.session_handle(), StrCat(absl::Hex(before + 1, absl::kZeroPad16),
                                             absl::Hex(before + 2, absl::kZeroPad16)));
}

TEST(ServerEntropyTest, TheMachinesGivesNoIncarnationTwice) {
  const auto one = Server::Start({.port = 0}, AllOps()),
             other = Server::Start({.port = 0}, AllOps());
  ASSERT_OK(one.status());
  ASSERT_OK(other.status());
  EXPECT_NE(StatusOf(**one).device_attributes(0).incarnation(),
            StatusOf(**other).device_attributes(0).incarnation());
}

}  // namespace
}  // namespace tenon
