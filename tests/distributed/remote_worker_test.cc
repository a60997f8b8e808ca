// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/remote_worker.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <filesystem>
#include <future>
#include <numeric>
#include <string>
#include <thread>
#include <tuple>

#include "core/device/rendezvous.h"
#include "core/proto/proto_io_graph.h"
#include "ops/register.h"
#include "runtime/device/machine_clock.h"
#include "tests/testing/counting_allocator.h"
#include "tests/testing/host_memory.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/test_cluster.h"

namespace tenon::testing {
namespace {

int NumLocalSockets() {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    int family = 0;
    socklen_t size = sizeof(family);
    const int file = std::stoi(entry.path().filename());
    if (getsockopt(file, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && family == AF_UNIX) ++found;
  }
  return found;
}

/// Another task, called as a worker would.
class RemoteWorkerTest : public ::testing::TestWithParam<std::tuple<const char*, int>> {
 protected:
  RemoteWorkerTest() {
    servers_.StartAll();
    worker_ = directory_.Get(kPs).value();
    GetStatusResponse status;
    EXPECT_OK(Await([&](auto done) { worker_->GetStatusAsync({}, &status, std::move(done)); }));
    incarnation_ = status.device_attributes(0).incarnation();
  }

  template <typename Start>
  static Status Await(Start start) {
    std::promise<Status> over;
    start([&](Status s) { over.set_value(std::move(s)); });
    return over.get_future().get();
  }

  /// A graph of the other task that sends `value` to this one.
  std::string Register(const Tensor& value) {
    Graph graph(AllOps());
    const AttributeMap of = {{"dtype", value.dtype()}, {"value", value}};
    Node* const constant = graph.AddNode("constant", "Const", of, {}).value();
    Node* const send =
        graph
            .AddNode("send", "_Send",
                     {{"T", value.dtype()},
                      {"tensor_name", "x"},
                      {"send_device", kDevice},
                      {"send_device_incarnation", static_cast<int64_t>(incarnation_)},
                      {"recv_device", kHere}},
                     {{constant, 0}})
            .value();
    for (Node* n : {constant, send}) n->set_assigned_device(kDevice);
    RegisterGraphRequest request;
    EXPECT_OK(GraphToProto(graph, request.mutable_graph_def(), {true}));
    RegisterGraphResponse response;
    EXPECT_OK(Await(
        [&](auto done) { worker_->RegisterGraphAsync(request, &response, std::move(done)); }));
    return response.graph_handle();
  }

  static constexpr char kPs[] = "/job:ps/replica:0/task:0";
  const std::string kDevice = StrCat(kPs, "/device:CPU:0");
  const std::string kHere = "/job:worker/replica:0/task:0/device:GPU:0";
  const int sockets_before_ = NumLocalSockets();
  const HostMemory host_memory_{std::get<0>(GetParam())};
  TestCluster servers_{1, 1};
  ThreadPool pool_{2};
  Poller poller_{std::make_unique<grpc::CompletionQueue>(), pool_, MachineClock()};
  GrpcWorkerDirectory directory_{servers_.spec(), {}, poller_};
  std::shared_ptr<WorkerInterface> worker_;
  uint64_t incarnation_ = 0;
};

/// Sizes that come in a frame; in parts, or out of the other's memory; and in pieces of it.
TEST_P(RemoteWorkerTest, ATensorArrivesInTheMemoryThatTheCallNames) {
  const auto [transport, size] = GetParam();
  Tensor value(DType::kFloat, {size});
  std::iota(value.data<float>(), value.data<float>() + size, 5.0f);
  const std::string handle = Register(value);
  CountingAllocator memory;
  constexpr int kSteps = 12;
  // Both ends of the connection are in this process.
  const int wanted_sockets = std::string(transport) == "off" ? 0 : 2;
  const auto has_sockets = [&] { return NumLocalSockets() - sockets_before_ == wanted_sockets; };
  for (int64_t step = 1; step <= kSteps; ++step) {
    RunGraphCall run;
    run.graph_handle = handle;
    run.step_id = step;
    ASSERT_OK(Await([&](auto done) { worker_->RunGraphAsync(&run, nullptr, std::move(done)); }));
    RecvTensorCall recv;
    recv.step_id = step;
    recv.key = RendezvousKey{kDevice, incarnation_, kHere, "x", 0, 0}.ToString();
    recv.memory = &memory;
    ASSERT_OK(Await([&](auto done) { worker_->RecvTensorAsync(&recv, nullptr, std::move(done)); }));
    EXPECT_TRUE(recv.tensor.Equals(value));
    EXPECT_EQ(&recv.tensor.allocator(), &memory);
    CleanupGraphRequest clean_up;
    clean_up.set_step_id(step);
    CleanupGraphResponse cleaned_up;
    ASSERT_OK(Await(
        [&](auto done) { worker_->CleanupGraphAsync(clean_up, &cleaned_up, std::move(done)); }));
    // The first steps are calls of their own; by then the stream stands.
    if (step != 2) continue;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    for (int i = 0; i < 1000 && !has_sockets(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  EXPECT_EQ(memory.blocks, kSteps);
  EXPECT_EQ(memory.bytes_in_use(), 0);
  EXPECT_TRUE(has_sockets());
}

INSTANTIATE_TEST_SUITE_P(Transports, RemoteWorkerTest,
                         ::testing::Combine(::testing::Values("16384", "0", "off"),
                                            ::testing::Values(1000, 30'000, 300'000, 2'000'001)));

}  // namespace
}  // namespace tenon::testing
