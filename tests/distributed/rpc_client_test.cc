// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/rpc/rpc_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <thread>

#include "core/base/mutex.h"
#include "runtime/device/machine_clock.h"
#include "runtime/device/thread_pool.h"
#include "tests/distributed/peer_caller.h"

namespace tenon::testing {
namespace {

/// Whoever waits for a task that goes away waits for it to come back, which "cancelled" would not
/// have it do.
TEST(RpcClientTest, CallsThatAServerEndsSinceItShutsDownAreUnavailable) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  ThreadPool pool(2);
  Poller poller(std::make_unique<grpc::CompletionQueue>(), pool, MachineClock());
  const Credentials none;
  const grpc::Slice nothing;  // GetStatusRequest
  std::map<int, int> ended;   // how often with each code
  for (int i = 0; i < 20; ++i) {
    RpcClient client(OpenChannel(*AddressOfTarget(cluster.at("ps", 0).target())), none, poller);
    std::atomic<bool> goes_on = true;
    Mutex mu;
    CondVar one_ended;
    int running = 0;
    std::jthread caller([&] {
      MutexLock lock(mu);
      while (goes_on || running > 0) {
        if (goes_on && running < 32) {
          ++running;
          mu.Unlock();
          client.Call("/tensorflow.WorkerService/GetStatus", grpc::ByteBuffer(&nothing, 1),
                      std::chrono::milliseconds(0), nullptr,
                      [&](const grpc::Status& status, grpc::ByteBuffer*) {
                        MutexLock ended_lock(mu);
                        ++ended[status.error_code()];
                        --running;
                        one_ended.NotifyAll();
                      });
          mu.Lock();
        } else {
          one_ended.Wait(mu);
        }
      }
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + i));
    cluster.Stop("ps", 0);
    goes_on = false;
    caller.join();
    client.Close();
    cluster.StartOne("ps", 0);
  }
  for (const auto& [code, times] : ended) {
    EXPECT_TRUE(code == grpc::StatusCode::OK || code == grpc::StatusCode::UNAVAILABLE)
        << code << ", " << times << " times";
  }
  EXPECT_GT(ended[grpc::StatusCode::OK], 0);
  EXPECT_GT(ended[grpc::StatusCode::UNAVAILABLE], 0);
}

}  // namespace
}  // namespace tenon::testing
