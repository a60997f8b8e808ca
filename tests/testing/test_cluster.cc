// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/test_cluster.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/testing/registry.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length), 0);
  close(fd);
  return ntohs(address.sin_port);
}

TestCluster::TestCluster(int num_ps, int num_workers) {
  for (int i = 0; i < num_ps; ++i) Add("ps", i);
  for (int i = 0; i < num_workers; ++i) Add("worker", i);
}

void TestCluster::Add(const std::string& job, int task) {
  ASSERT_OK(spec_.AddTask(job, task, StrCat("127.0.0.1:", FreePort())));
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
  options.start_up_deadline = std::chrono::milliseconds(5000);
  auto server = Server::Start(options, AllOps());
  ASSERT_OK(server);
  servers_[{job, task}] = *std::move(server);
}

}  // namespace tenon::testing
