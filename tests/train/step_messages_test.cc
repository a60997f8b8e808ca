// SPDX-License-Identifier: Apache-2.0
// How many messages tasks send each other in a step of training, how many bytes these have, and how
// many the tasks read in each other's memory. They depend less on the machine than times do.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "core/base/sanitizers.h"
#include "core/build/building.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/nn/nn_ops.h"
#include "ops/register.h"
#include "tests/testing/host_memory.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/test_cluster.h"
#include "train/layers/dense.h"
#include "train/optimizers/gradient_descent.h"
#include "train/replica_device_setter.h"
#include "train/variables.h"

namespace {

std::atomic<int64_t> messages{0}, message_bytes{0}, memory_reads{0}, memory_bytes{0};

}  // namespace

#if !TENON_ADDRESS_SANITIZER && !TENON_THREAD_SANITIZER
// These stand in the place of the C library's, also for gRPC.
extern "C" ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  const auto sent = static_cast<ssize_t>(syscall(SYS_sendmsg, socket, message, flags));
  if (sent > 0) {
    messages.fetch_add(1, std::memory_order_relaxed);
    message_bytes.fetch_add(sent, std::memory_order_relaxed);
  }
  return sent;
}

extern "C" ssize_t process_vm_readv(pid_t process, const iovec* own, unsigned long own_count,
                                    const iovec* theirs, unsigned long their_count,
                                    unsigned long flags) noexcept {
  const auto read = static_cast<ssize_t>(
      syscall(SYS_process_vm_readv, process, own, own_count, theirs, their_count, flags));
  if (read > 0) {
    memory_reads.fetch_add(1, std::memory_order_relaxed);
    memory_bytes.fetch_add(read, std::memory_order_relaxed);
  }
  return read;
}
#endif

namespace tenon::testing {
namespace {

struct Counts {
  int64_t messages, message_bytes, memory_reads, memory_bytes;
  static Counts Now() {
    return {::messages.load(), ::message_bytes.load(), ::memory_reads.load(),
            ::memory_bytes.load()};
  }
};

constexpr int64_t kBatch = 100, kInputs = 784, kHidden = 100, kClasses = 10;
/// The bytes of the network's weights, of which each step reads all and changes all.
constexpr int64_t kLargeBytes = 4 * kInputs * kHidden;
constexpr int64_t kWeightBytes = kLargeBytes + 4 * kHidden * kClasses;

/// The least of some times ten steps of a worker whose weights are a parameter server's, until
/// there are no more than `enough` messages: a busy machine may divide one. Both are tasks of this
/// process, and the worker is its own master.
Counts CountsOfTenSteps(int64_t enough) {
  constexpr int kTimes = 30, kMostTimes = 600, kSteps = 10;
  TestCluster cluster(1, 1);
  cluster.StartAll();
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  SetRandomSeed(1);
  const DeviceScope setter(
      ReplicaDeviceSetter({.ps_tasks = 1, .worker_device = "/job:worker/task:0"}));
  const Output x = Placeholder(DType::kFloat, {kBatch, kInputs});
  const Output y = Dense(kClasses)(Dense(kHidden, {.activation = Sigmoid})(x));
  const Output loss = Mean(Square(y));
  Node* const train = GradientDescent(0.1).Minimize(loss);
  Node* const init = GlobalVariablesInitializer();
  EXPECT_OK(graph.error());
  auto session = cluster.at("worker", 0).MakeSession(graph);
  EXPECT_OK(session.status());
  EXPECT_OK((*session)->Run({}, {}, {init}).status());
  auto step = (*session)->Prepare({x}, {loss}, {train});
  EXPECT_OK(step.status());
  const std::vector<Tensor> feeds = {Tensor::Zeros(DType::kFloat, {kBatch, kInputs})};
  std::vector<Tensor> fetched;
  Counts least = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
  for (int i = 0; i < kMostTimes && (i < kTimes || least.messages > enough); ++i) {
    const Counts before = Counts::Now();
    for (int k = 0; k < kSteps; ++k) EXPECT_OK((*step)->Run(feeds, &fetched));
    const Counts after = Counts::Now();
    if (i == 0) continue;  // paths are found, and threads
    least.messages = std::min(least.messages, after.messages - before.messages);
    least.message_bytes = std::min(least.message_bytes, after.message_bytes - before.message_bytes);
    least.memory_reads = std::min(least.memory_reads, after.memory_reads - before.memory_reads);
    least.memory_bytes = std::min(least.memory_bytes, after.memory_bytes - before.memory_bytes);
  }
  return least;
}

/// Whether the system lets processes read each other's memory.
bool MayReadMemory() {
  int from = 7, to = 0;
  const iovec own = {&to, sizeof(to)}, theirs = {&from, sizeof(from)};
  const auto process = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
  if (process < 0) return false;
  close(process);
  return process_vm_readv(getpid(), &own, 1, &theirs, 1, 0) == sizeof(to) && to == from;
}

class StepMessagesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "a sanitizer has its own sendmsg";
  }
};

// The limits are a twentieth above the counts of today: 7 messages of 11,388 bytes a step, and by
// gRPC 8 of 638,740. One that is not needed today is no reason to allow another.

TEST_F(StepMessagesTest, OfTasksOfOneHost) {
  const HostMemory usual(nullptr);
  if (!MayReadMemory()) GTEST_SKIP() << "this host's tasks may not read each other's memory";
  constexpr int64_t kMessages = 73;
  const Counts steps = CountsOfTenSteps(kMessages);
  EXPECT_LE(steps.messages, kMessages);
  EXPECT_LE(steps.message_bytes, 119500);
  // The first layer's weights and their gradients, each with the words that tell that they are
  // there still; the others are small enough for messages.
  EXPECT_EQ(steps.memory_reads, 20);
  EXPECT_EQ(steps.memory_bytes, 20 * (kLargeBytes + 32));
}

TEST_F(StepMessagesTest, OfTasksThatOnlyGrpcJoins) {
  const HostMemory none("off");
  constexpr int64_t kMessages = 84;
  const Counts steps = CountsOfTenSteps(kMessages);
  EXPECT_LE(steps.messages, kMessages);
  EXPECT_GE(steps.message_bytes, 15 * kWeightBytes);  // some may count for the steps around
  EXPECT_LE(steps.message_bytes, 6700000);
  EXPECT_EQ(steps.memory_reads, 0);
}

}  // namespace
}  // namespace tenon::testing
