// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/peer/listening_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "core/base/strings.h"

namespace tenon {
namespace {

/// A socket that listens at an address of this host, at a port of its own or at `port`.
class ListeningSocket {
 public:
  explicit ListeningSocket(const std::string& host, int port = 0) {
    const bool is_v6 = host.find(':') != host.npos;
    number_ = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_storage storage = {};
    socklen_t size = 0;
    if (is_v6) {
      auto& address = reinterpret_cast<sockaddr_in6&>(storage);
      address.sin6_family = AF_INET6;
      address.sin6_port = htons(port);
      inet_pton(AF_INET6, host.c_str(), &address.sin6_addr);
      size = sizeof(address);
    } else {
      auto& address = reinterpret_cast<sockaddr_in&>(storage);
      address.sin_family = AF_INET;
      address.sin_port = htons(port);
      inet_pton(AF_INET, host.c_str(), &address.sin_addr);
      size = sizeof(address);
    }
    listens_ = bind(number_, reinterpret_cast<sockaddr*>(&storage), size) == 0 &&
               listen(number_, 1) == 0 &&
               getsockname(number_, reinterpret_cast<sockaddr*>(&storage), &size) == 0;
    port_ = ntohs(is_v6 ? reinterpret_cast<sockaddr_in6&>(storage).sin6_port
                        : reinterpret_cast<sockaddr_in&>(storage).sin_port);
  }
  ~ListeningSocket() { Close(); }
  void Close() {
    if (number_ >= 0) close(number_);
    number_ = -1;
  }
  bool listens() const { return listens_; }
  int port() const { return port_; }

 private:
  int number_ = -1, port_ = 0;
  bool listens_ = false;
};

/// A process with only the sockets that this one has when it starts.
class Child {
 public:
  Child() : process_(fork()) {
    if (process_ == 0) {
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

TEST(ListeningProcessTest, TheProcessThatListensIsTold) {
  const Child other;
  const ListeningSocket socket("127.0.0.1");
  ASSERT_TRUE(socket.listens());
  const std::string peer = StrCat("ipv4:127.0.0.1:", socket.port());
  EXPECT_TRUE(IsListeningAt(getpid(), peer));
  EXPECT_FALSE(IsListeningAt(other.process(), peer));
  EXPECT_FALSE(IsListeningAt(getpid(), StrCat("ipv4:127.0.0.2:", socket.port())));
  EXPECT_TRUE(IsListeningAt(getpid(), StrCat("ipv6:[::ffff:127.0.0.1]:", socket.port())));
}

/// The one with the address itself is called.
TEST(ListeningProcessTest, ASocketOfAnotherAddressAtTheSamePortIsNotMeant) {
  ListeningSocket second("127.0.0.2");
  ASSERT_TRUE(second.listens());
  const Child other;  // has the second
  second.Close();
  const ListeningSocket first("127.0.0.1", second.port());
  ASSERT_TRUE(first.listens());
  EXPECT_FALSE(IsListeningAt(other.process(), StrCat("ipv4:127.0.0.1:", first.port())));
  EXPECT_TRUE(IsListeningAt(other.process(), StrCat("ipv4:127.0.0.2:", first.port())));
  EXPECT_FALSE(IsListeningAt(getpid(), StrCat("ipv4:127.0.0.2:", first.port())));
}

TEST(ListeningProcessTest, ASocketOfAllAddressesIsThatOfEach) {
  const ListeningSocket socket("0.0.0.0");
  ASSERT_TRUE(socket.listens());
  EXPECT_TRUE(IsListeningAt(getpid(), StrCat("ipv4:127.0.0.1:", socket.port())));
  // An address for documentation, which no host has.
  EXPECT_FALSE(IsListeningAt(getpid(), StrCat("ipv4:192.0.2.1:", socket.port())));
  const ListeningSocket both("::");
  if (!both.listens()) GTEST_SKIP() << "this host has no IPv6";
  EXPECT_TRUE(IsListeningAt(getpid(), StrCat("ipv4:127.0.0.1:", both.port())));
  EXPECT_TRUE(IsListeningAt(getpid(), StrCat("ipv6:%5B::1%5D:", both.port())));
  EXPECT_TRUE(IsListeningAt(getpid(), StrCat("ipv6:[::1]:", both.port())));
  EXPECT_FALSE(IsListeningAt(getpid(), StrCat("ipv6:[2001:db8::1]:", both.port())));
}

TEST(ListeningProcessTest, AddressesOfThisHostAreTold) {
  for (const char* const own : {"ipv4:127.0.0.1:80", "ipv4:127.1.2.3:80"}) {
    EXPECT_TRUE(IsOfThisHost(own)) << own;
  }
  for (const char* const others :
       {"ipv4:192.0.2.1:80", "ipv6:[2001:db8::1]:80", "unix:", "", "ipv4:0.0.0.0:80"}) {
    EXPECT_FALSE(IsOfThisHost(others)) << others;
  }
}

TEST(ListeningProcessTest, WhatIsNoAddressHasNoProcess) {
  const ListeningSocket socket("127.0.0.1");
  for (const char* const host : {"", "ipv4:", "ipv4:localhost", "ipv6:[::1", "unix:"}) {
    EXPECT_FALSE(IsListeningAt(getpid(), StrCat(host, ":", socket.port()))) << host;
  }
  EXPECT_FALSE(IsListeningAt(getpid(), "unix:/tmp/socket"));
  EXPECT_FALSE(IsListeningAt(getpid(), "ipv4:127.0.0.1"));
  EXPECT_FALSE(IsListeningAt(getpid(), "ipv4:127.0.0.1:70000"));
  EXPECT_FALSE(IsListeningAt(0, StrCat("ipv4:127.0.0.1:", socket.port())));
}

}  // namespace
}  // namespace tenon
