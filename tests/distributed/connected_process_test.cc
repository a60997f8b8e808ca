// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/peer/connected_process.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>

#include "core/base/strings.h"
#include "distributed/grpc/peer/local_socket.h"

namespace tenon {
namespace {

/// A connection of this process with itself, from an address to a socket that listens at another.
class Connection {
 public:
  /// `listens_at` is `to`, or all addresses.
  Connection(const std::string& listens_at, const std::string& to) {
    const int family = to.find(':') == to.npos ? AF_INET : AF_INET6;
    sockaddr_storage at = At(listens_at, 0), found = {};
    listener_ = OwnedFile(socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    socklen_t size = sizeof(found);
    if (bind(listener_.number(), reinterpret_cast<sockaddr*>(&at), sizeof(sockaddr_in6)) != 0 ||
        listen(listener_.number(), 4) != 0 ||
        getsockname(listener_.number(), reinterpret_cast<sockaddr*>(&found), &size) != 0) {
      return;
    }
    port_ = ntohs(reinterpret_cast<sockaddr_in&>(found).sin_port);  // at the same place in both
    to_ = At(to, port_);
    peer_ =
        family == AF_INET6 ? StrCat("ipv6:[", to, "]:", port_) : StrCat("ipv4:", to, ":", port_);
    Connect();
  }
  /// Another one, to the same address.
  void Connect(bool accepts = true) {
    caller_.emplace_back(socket(to_.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(caller_.back().number(), reinterpret_cast<sockaddr*>(&to_),
                to_.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in)) != 0) {
      return;
    }
    if (accepts)
      accepted_.emplace_back(accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  bool valid() const { return !accepted_.empty() && accepted_.back().valid(); }
  int port() const { return port_; }
  /// The address that was called, as gRPC names it.
  const std::string& peer() const { return peer_; }
  void CloseAccepted(size_t i) { accepted_[i] = OwnedFile(); }
  void CloseCallers() { caller_.clear(); }

 private:
  static sockaddr_storage At(const std::string& host, int port) {
    sockaddr_storage storage = {};
    if (host.find(':') != host.npos) {
      auto& address = reinterpret_cast<sockaddr_in6&>(storage);
      address.sin6_family = AF_INET6;
      address.sin6_port = htons(static_cast<uint16_t>(port));
      inet_pton(AF_INET6, host.c_str(), &address.sin6_addr);
    } else {
      auto& address = reinterpret_cast<sockaddr_in&>(storage);
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<uint16_t>(port));
      inet_pton(AF_INET, host.c_str(), &address.sin_addr);
    }
    return storage;
  }

  OwnedFile listener_;
  std::vector<OwnedFile> caller_, accepted_;
  sockaddr_storage to_ = {};
  int port_ = 0;
  std::string peer_;
};

/// A process with only the descriptors that this one has when it starts.
class Child {
 public:
  Child() : process_(fork()) {
    if (process_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (true) pause();
    }
  }
  ~Child() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  pid_t process() const { return process_; }

 private:
  const pid_t process_;
};

TEST(ConnectedProcessTest, TheProcessWithTheOtherEndIsTold) {
  const Child before;
  Connection connection("127.0.0.1", "127.0.0.1");
  ASSERT_TRUE(connection.valid());
  EXPECT_TRUE(IsConnectedTo(getpid(), connection.peer()));
  EXPECT_FALSE(IsConnectedTo(before.process(), connection.peer()));
  const Child after;  // has it, too
  connection.CloseAccepted(0);
  EXPECT_TRUE(IsConnectedTo(after.process(), connection.peer()));
  EXPECT_FALSE(IsConnectedTo(getpid(), connection.peer()));  // although it listens there
}

/// Whoever had the address before may still have a connection.
TEST(ConnectedProcessTest, AProcessThatLacksOneOfTheConnectionsIsNotMeant) {
  Connection connection("127.0.0.1", "127.0.0.1");
  ASSERT_TRUE(connection.valid());
  const Child first;
  connection.CloseAccepted(0);
  connection.Connect();
  ASSERT_TRUE(connection.valid());
  EXPECT_FALSE(IsConnectedTo(first.process(), connection.peer()));
  EXPECT_FALSE(IsConnectedTo(getpid(), connection.peer()));
}

TEST(ConnectedProcessTest, ASocketOfAllAddressesHasConnectionsOfEach) {
  Connection v4("0.0.0.0", "127.0.0.1");
  ASSERT_TRUE(v4.valid());
  EXPECT_TRUE(IsConnectedTo(getpid(), v4.peer()));
  EXPECT_TRUE(IsConnectedTo(getpid(), StrCat("ipv6:[::ffff:127.0.0.1]:", v4.port())));
  EXPECT_FALSE(IsConnectedTo(getpid(), StrCat("ipv4:127.0.0.2:", v4.port())));
  EXPECT_FALSE(IsConnectedTo(getpid(), StrCat("ipv4:192.0.2.1:", v4.port())));
  Connection v6("::", "::1"), mixed("::", "127.0.0.1");
  if (!v6.valid() || !mixed.valid()) GTEST_SKIP() << "this host has no IPv6";
  EXPECT_TRUE(IsConnectedTo(getpid(), v6.peer()));
  EXPECT_TRUE(IsConnectedTo(getpid(), StrCat("ipv6:%5B::1%5D:", v6.port())));
  EXPECT_TRUE(IsConnectedTo(getpid(), mixed.peer()));
}

/// The server has not come to the second connection of this process yet.
TEST(ConnectedProcessTest, AConnectionThatNobodyHasAcceptedDoesNotCount) {
  Connection connection("127.0.0.1", "127.0.0.1");
  ASSERT_TRUE(connection.valid());
  connection.Connect(false);
  EXPECT_TRUE(IsConnectedTo(getpid(), connection.peer()));
  connection.CloseAccepted(0);
  EXPECT_FALSE(IsConnectedTo(getpid(), connection.peer()));
}

TEST(ConnectedProcessTest, AConnectionThatIsOverIsNone) {
  Connection connection("127.0.0.1", "127.0.0.1");
  ASSERT_TRUE(connection.valid());
  connection.CloseCallers();
  EXPECT_FALSE(IsConnectedTo(getpid(), connection.peer()));
}

TEST(ConnectedProcessTest, AddressesOfThisHostAreTold) {
  for (const char* const own : {"ipv4:127.0.0.1:80", "ipv4:127.1.2.3:80"}) {
    EXPECT_TRUE(IsOfThisHost(own)) << own;
  }
  // The addresses 192.0.2.1 and 2001:db8::1 are for documentation: no host has them.
  for (const char* const others :
       {"ipv4:192.0.2.1:80", "ipv6:[2001:db8::1]:80", "unix:", "", "ipv4:0.0.0.0:80"}) {
    EXPECT_FALSE(IsOfThisHost(others)) << others;
  }
}

TEST(ConnectedProcessTest, WhatIsNoAddressHasNoProcess) {
  Connection connection("127.0.0.1", "127.0.0.1");
  for (const char* const host :
       {"", "ipv4:", "ipv4:localhost", "ipv6:[::1", "ipv6:[fe80::1%lo]", "unix:"}) {
    EXPECT_FALSE(IsConnectedTo(getpid(), StrCat(host, ":", connection.port()))) << host;
  }
  EXPECT_FALSE(IsConnectedTo(getpid(), "unix:/tmp/socket"));
  EXPECT_FALSE(IsConnectedTo(getpid(), "ipv4:127.0.0.1"));
  EXPECT_FALSE(IsConnectedTo(getpid(), "ipv4:127.0.0.1:70000"));
  EXPECT_FALSE(IsConnectedTo(0, connection.peer()));
}

}  // namespace
}  // namespace tenon
