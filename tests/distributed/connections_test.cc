// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/rpc/connections.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <deque>

#include "core/base/strings.h"

namespace tenon {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// An address of either kind.
sockaddr_storage Peer(const char* address, int port) {
  sockaddr_storage storage{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
  const bool is_v4 = inet_pton(AF_INET, address, &v4.sin_addr) == 1;
  if (!is_v4) EXPECT_EQ(inet_pton(AF_INET6, address, &v6.sin6_addr), 1) << address;
  storage.ss_family = is_v4 ? AF_INET : AF_INET6;
  (is_v4 ? v4.sin_port : v6.sin6_port) = htons(static_cast<uint16_t>(port));
  return storage;
}

/// A connection, of which a test holds both ends.
class Pair {
 public:
  Pair() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_), 0); }
  ~Pair() {
    for (const int end : ends_) close(end);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  int server() const { return ends_[0]; }
  bool IsHungUp() const {
    char byte = 0;
    return recv(ends_[1], &byte, 1, 0) == 0;
  }

 private:
  int ends_[2];
};

class ConnectionsTest : public ::testing::Test {
 protected:
  /// A new connection that stays open; why it was not admitted.
  std::string Admit(const char* address, int port, Connections& connections) {
    return connections.Admit(pairs_.emplace_back().server(), Peer(address, port), now_);
  }

  std::deque<Pair> pairs_;
  Clock::Time now_{std::chrono::hours(1)};
};

TEST_F(ConnectionsTest, PeersAreWrittenAsGrpcDoes) {
  EXPECT_EQ(PeerText(Peer("10.0.0.7", 4711)), "ipv4:10.0.0.7:4711");
  EXPECT_EQ(PeerText(Peer("::1", 80)), "ipv6:[::1]:80");
  EXPECT_EQ(PeerText(Peer("::ffff:10.0.0.7", 80)), "ipv4:10.0.0.7:80");
}

TEST_F(ConnectionsTest, WhoHasCalledIsWelcomeAndOnlyHeStays) {
  Connections connections(100);
  EXPECT_TRUE(connections.AllAreWelcome());
  EXPECT_THAT(Admit("10.0.0.1", 1, connections), IsEmpty());
  EXPECT_THAT(Admit("10.0.0.1", 2, connections), IsEmpty());
  EXPECT_THAT(connections.Admit(pairs_.emplace_back().server(), Peer("::1", 3), now_), IsEmpty());
  EXPECT_FALSE(connections.AllAreWelcome());
  connections.Welcome("ipv4:10.0.0.1:1");
  connections.Welcome("ipv6:%5B::1%5D:3");
  connections.Sweep(now_ + Connections::kTimeToCall - seconds(1));
  EXPECT_FALSE(pairs_[1].IsHungUp());
  connections.Sweep(now_ + Connections::kTimeToCall + seconds(1));
  EXPECT_FALSE(pairs_[0].IsHungUp());
  EXPECT_TRUE(pairs_[1].IsHungUp());
  EXPECT_FALSE(pairs_[2].IsHungUp());
  EXPECT_TRUE(connections.AllAreWelcome());
}

TEST_F(ConnectionsTest, TheLimitCountsThoseThatAreOpen) {
  Connections connections(3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Admit("10.0.0.1", i, connections), IsEmpty());
    connections.Welcome(StrCat("ipv4:10.0.0.1:", i));
  }
  EXPECT_EQ(connections.num_open(), 3);
  EXPECT_THAT(Admit("10.0.0.2", 4, connections), HasSubstr("3 are open, as many as may be"));
  pairs_.pop_front();
  now_ += seconds(1);
  EXPECT_THAT(Admit("10.0.0.2", 5, connections), IsEmpty());
  EXPECT_EQ(connections.num_open(), 3);
}

TEST_F(ConnectionsTest, OneAddressCannotHoldAllPlacesInSilence) {
  Connections connections(40);
  for (int i = 0; i < 10; ++i) EXPECT_THAT(Admit("10.0.0.1", i, connections), IsEmpty());
  EXPECT_THAT(Admit("10.0.0.1", 10, connections), HasSubstr("ipv4:10.0.0.1 has 10 that make no"));
  EXPECT_THAT(Admit("10.0.0.2", 1, connections), IsEmpty());
  // Connections that are gone do not count, nor do those that have called.
  pairs_.pop_front();
  now_ += seconds(1);
  EXPECT_THAT(Admit("10.0.0.1", 11, connections), IsEmpty());
  connections.Welcome("ipv4:10.0.0.1:11");
  EXPECT_THAT(Admit("10.0.0.1", 12, connections), IsEmpty());
  now_ += seconds(1);
  EXPECT_THAT(Admit("10.0.0.1", 13, connections), HasSubstr("make no call"));
}

TEST_F(ConnectionsTest, WhoseCallsAreRefusedTooOftenIsShutOutForAWhile) {
  Connections connections(100);
  EXPECT_THAT(Admit("10.0.0.1", 1, connections), IsEmpty());
  EXPECT_THAT(Admit("10.0.0.1", 2, connections), IsEmpty());
  EXPECT_THAT(Admit("10.0.0.2", 3, connections), IsEmpty());
  connections.Welcome("ipv4:10.0.0.1:1");
  const int refusals = static_cast<int>(Connections::kRefusals);
  for (int i = 1; i < refusals; ++i) {
    EXPECT_THAT(connections.Refuse("ipv4:10.0.0.1:2", now_), IsEmpty()) << i;
  }
  // With time some more are forgiven.
  now_ += seconds(1);
  for (int i = 0; i < Connections::kRefusalsASecond; ++i) {
    EXPECT_THAT(connections.Refuse("ipv4:10.0.0.1:2", now_), IsEmpty()) << i;
  }
  EXPECT_FALSE(pairs_[1].IsHungUp());
  EXPECT_THAT(connections.Refuse("ipv4:10.0.0.1:9", now_),
              HasSubstr("hung up on ipv4:10.0.0.1 for 10 s"));
  EXPECT_FALSE(pairs_[0].IsHungUp()) << "it has shown that it may call";
  EXPECT_TRUE(pairs_[1].IsHungUp());
  EXPECT_FALSE(pairs_[2].IsHungUp()) << "another address";
  EXPECT_THAT(connections.Refuse("ipv4:10.0.0.1:2", now_), IsEmpty()) << "said once";
  EXPECT_THAT(Admit("10.0.0.1", 4, connections), HasSubstr("ipv4:10.0.0.1 is shut out"));
  EXPECT_THAT(Admit("10.0.0.2", 5, connections), IsEmpty());
  now_ += Connections::kShutOut + seconds(1);
  EXPECT_THAT(Admit("10.0.0.1", 6, connections), IsEmpty());
  connections.Sweep(now_ + seconds(60));
}

}  // namespace
}  // namespace tenon
