// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/test_cluster.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ops/register.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {

namespace {

/// A port of loopback that nobody listens on; nobody else gets it while the object lives.
class FreePort {
 public:
  FreePort() {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address_);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address_), length), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address_), &length), 0);
  }
  ~FreePort() { close(fd_); }
  FreePort(const FreePort&) = delete;
  FreePort& operator=(const FreePort&) = delete;

  std::string address() const { return StrCat("127.0.0.1:", ntohs(address_.sin_port)); }

 private:
  const int fd_ = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address_{};
};

}  // namespace

TestCluster::TestCluster(int num_ps, int num_workers, const ServerLimits& limits, int cpus)
    : limits_(limits), cpus_(cpus) {
  const std::vector<FreePort> ports(num_ps + num_workers);
  for (int i = 0; i < num_ps + num_workers; ++i) {
    const bool is_ps = i < num_ps;
    EXPECT_OK(spec_.AddTask(is_ps ? "ps" : "worker", is_ps ? i : i - num_ps, ports[i].address()));
  }
}

void TestCluster::StartAll() {
  for (const auto& [job, tasks] : spec_.jobs()) {
    for (const auto& [task, address] : tasks) StartOne(job, task);
  }
}

void TestCluster::StartOne(const std::string& job, int task) {
  ServerOptions options;
  options.cluster = spec_;
  options.job = job;
  options.task = task;
  options.threads = 2;
  options.devices.cpus = cpus_;
  options.start_up_deadline = std::chrono::milliseconds(5000);
  options.limits = limits_;
  auto server = Server::Start(options, AllOps());
  ASSERT_OK(server);
  servers_[{job, task}] = *std::move(server);
}

}  // namespace tenon::testing
