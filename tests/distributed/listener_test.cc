// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/rpc/listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "core/base/sanitizers.h"
#include "distributed/protocol/server.h"
#include "ops/register.h"
#include "proto/worker.pb.h"
#include "runtime/device/machine_clock.h"
#include "tests/distributed/raw_client.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RawCaller;
using testing::RawSocket;

bool HasIpv6() {
  std::ifstream file("/proc/net/if_inet6");
  const std::string interfaces{std::istreambuf_iterator<char>(file), {}};
  return interfaces.find("00000000000000000000000000000001") != std::string::npos;
}

/// Greets who is let in, and closes a connection when told to.
class ListenerTest : public ::testing::Test {
 protected:
  ~ListenerTest() override {
    MutexLock lock(mu_);
    for (const int socket : sockets_) close(socket);
  }

  Listener::Take Greet() {
    return [this](int socket) {
      MutexLock lock(mu_);
      sockets_.push_back(socket);
      EXPECT_EQ(send(socket, "hello", 5, MSG_NOSIGNAL), 5);
    };
  }
  std::function<void(const std::string&)> Note() {
    return [this](const std::string& line) {
      MutexLock lock(mu_);
      notices_.push_back(line);
    };
  }
  void CloseOldest() {
    MutexLock lock(mu_);
    close(sockets_.front());
    sockets_.erase(sockets_.begin());
  }
  std::vector<std::string> notices() {
    MutexLock lock(mu_);
    return notices_;
  }

 private:
  Mutex mu_;
  std::vector<int> sockets_;
  std::vector<std::string> notices_;
};

TEST_F(ListenerTest, BeyondTheLimitClientsAreHungUpOn) {
  Listener listener(2, MachineClock(), Note());
  const auto port = listener.Listen("127.0.0.1", 0, Greet());
  ASSERT_OK(port);
  ASSERT_OK(listener.Start());
  RawSocket first(*port), second(*port);
  EXPECT_EQ(first.Receive(), "hello");
  EXPECT_EQ(second.Receive(), "hello");
  EXPECT_EQ(listener.num_connections(), 2);
  for (int i = 0; i < 40; ++i) {
    RawSocket third(*port);
    const auto start = steady_clock::now();
    EXPECT_THAT(third.Receive(), IsEmpty());
    EXPECT_LT(steady_clock::now() - start, milliseconds(1500));
  }
  EXPECT_EQ(listener.num_connections(), 2);
  ASSERT_GE(notices().size(), 1U);
  EXPECT_THAT(notices()[0],
              HasSubstr("refused 1 connection: 2 are open, as many as may be (--max_connections)"));

  CloseOldest();
  EXPECT_EQ(listener.num_connections(), 1);
  RawSocket fourth(*port);
  EXPECT_EQ(fourth.Receive(), "hello");
}

TEST_F(ListenerTest, WithoutDescriptorsClientsDoNotWait) {
  if (kSanitized) return;  // the sanitizers want descriptors for themselves
  Listener listener(1000, MachineClock(), Note());
  const auto port = listener.Listen("127.0.0.1", 0, Greet());
  ASSERT_OK(port);
  ASSERT_OK(listener.Start());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = dup(0);  // the lowest that is free
  ASSERT_GE(next, 0);
  close(next);
  {
    // The client's own descriptor is the last one.
    rlimit none_left = before;
    none_left.rlim_cur = next + 1;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none_left), 0);
    RawSocket client(*port);
    EXPECT_TRUE(client.connected());
    EXPECT_THAT(client.Receive(), IsEmpty());
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  }
  const auto deadline = steady_clock::now() + std::chrono::seconds(20);
  while (notices().empty() && steady_clock::now() < deadline) std::this_thread::yield();
  ASSERT_GE(notices().size(), 1U);
  EXPECT_THAT(notices()[0], HasSubstr("no descriptor left"));
  RawSocket client(*port);
  EXPECT_EQ(client.Receive(), "hello");
}

TEST_F(ListenerTest, ListensAtAllAddressesOfTheHost) {
  Listener listener(10, MachineClock(), nullptr);
  const auto port = listener.Listen("localhost", 0, Greet());
  ASSERT_OK(port);
  ASSERT_OK(listener.Start());
  RawSocket client(*port);
  EXPECT_EQ(client.Receive(), "hello");

  Listener another(10, MachineClock(), nullptr);
  for (const char* host : {"localhost", "127.0.0.1", "0.0.0.0"}) {
    const auto taken = another.Listen(host, *port, Greet());
    ASSERT_FALSE(taken.ok()) << host;
    EXPECT_EQ(taken.status().code(), StatusCode::kUnavailable);
    EXPECT_THAT(taken.status().message(), HasSubstr(StrCat("cannot listen at ", host, ":", *port,
                                                           ": Address already in use")));
  }
  if (HasIpv6()) EXPECT_OK(another.Listen("[::1]", 0, Greet()));
}

TEST_F(ListenerTest, AllAddressesAreThoseOfBothKinds) {
  for (const char* host : {"0.0.0.0", "[::]"}) {
    Listener listener(10, MachineClock(), nullptr);
    const auto port = listener.Listen(host, 0, Greet());
    ASSERT_OK(port);
    ASSERT_OK(listener.Start());
    RawSocket client(*port);
    EXPECT_EQ(client.Receive(), "hello") << host;
    if (!HasIpv6()) continue;
    const int v6 = socket(AF_INET6, SOCK_STREAM, 0);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(static_cast<uint16_t>(*port));
    address.sin6_addr = in6addr_loopback;
    EXPECT_EQ(connect(v6, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0) << host;
    close(v6);
  }
}

TEST_F(ListenerTest, AServerThatIsFullServesWhoIsThereAndNobodyElse) {
  ServerOptions options;
  options.port = 0;
  options.limits.connections = 2;
  auto server = Server::Start(options, AllOps());
  ASSERT_OK(server);
  const auto ask = [](RawCaller& caller) {
    GetStatusResponse response;
    return caller.Call("/tensorflow.WorkerService/GetStatus", GetStatusRequest(), &response);
  };
  auto first = std::make_unique<RawCaller>((*server)->target());
  EXPECT_TRUE(ask(*first).ok());
  RawSocket silent((*server)->port());
  ASSERT_TRUE(silent.connected());
  const auto deadline = steady_clock::now() + std::chrono::seconds(20);
  while ((*server)->Describe().find("connections: 2") == std::string::npos) {
    ASSERT_LT(steady_clock::now(), deadline) << (*server)->Describe();
  }
  RawCaller second((*server)->target());
  const grpc::Status refused = ask(second);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(refused.error_message(), HasSubstr("failed to connect"));
  EXPECT_TRUE(ask(*first).ok());
  first.reset();
  grpc::Status answer;
  do {
    answer = ask(second);
  } while (!answer.ok() && steady_clock::now() < deadline);
  EXPECT_TRUE(answer.ok()) << answer.error_message();
}

}  // namespace
}  // namespace tenon
