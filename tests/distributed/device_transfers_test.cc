// SPDX-License-Identifier: Apache-2.0
//
// What comes over the network for a device with memory of its own, and what it sends.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/graph/output.h"
#include "core/proto/proto_io_graph.h"
#include "distributed/grpc/rpc/run_graph_coding.h"
#include "distributed/worker/worker.h"
#include "ops/cuda/device_kind.h"
#include "ops/register.h"
#include "runtime/accelerator/kernels.h"
#include "runtime/accelerator/stream_device.h"
#include "runtime/device/machine_clock.h"
#include "tests/testing/simulated_driver.h"
#include "tests/testing/simulated_kernels.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

constexpr char kOwnTask[] = "/job:worker/replica:0/task:0";
constexpr char kGpu[] = "/job:worker/replica:0/task:0/device:GPU:0";
constexpr char kOtherGpu[] = "/job:worker/replica:0/task:0/device:GPU:1";
constexpr char kCpuOfTask[] = "/job:worker/replica:0/task:0/device:CPU:0";
constexpr char kPeer[] = "/job:ps/replica:0/task:0/device:CPU:0";

/// A chain of kernels on the device. The first does not end before all are queued, and the last one
/// not before what the first has made is with whoever asked for it.
struct Chain {
  static constexpr int kLinks = 200;
  std::atomic<int> queued{0}, run{0};
  std::atomic<bool> first_has_left{false}, waited_in_vain{false};

  void RunLink() {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (queued < kLinks || (run == kLinks - 1 && !first_has_left)) {
      std::this_thread::yield();
      if (std::chrono::steady_clock::now() > limit) waited_in_vain = true;
      if (waited_in_vain) break;
    }
    ++run;
  }
  static Chain& Current() {
    static auto* const chain = new Chain;
    return *chain;
  }
};

Status QueueLink(KernelContext& ctx) {
  auto* const driver = static_cast<SimulatedDriver*>(ctx.device().queue()->stream());
  const Tensor& x = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(Tensor* const y, ctx.AllocateOutput(0, x.shape()));
  const void* const from = x.raw_data();
  void* const to = y->raw_data();
  const size_t bytes = x.num_bytes();
  driver->Launch(Stream::kCompute, {{from, bytes, false}, {to, bytes, true}}, [=] {
    std::memcpy(driver->OnDevice(to), driver->OnDevice(from), bytes);
    Chain::Current().RunLink();
  });
  ++Chain::Current().queued;
  return OkStatus();
}

const OpRegistry& OpsWithLink() {
  static const OpRegistry* const registry = [] {
    auto* ops = new OpRegistry;
    RegisterLibraryOps(*ops);
    RegisterAcceleratorKernels(*ops, kCuda);
    RegisterSimulatedKernels(*ops);
    ops->Declare("op Link(x: float) -> y: float", "device_transfers_test");
    ops->Get("Link").Shape(UnknownShape).Kernel(kCuda, QueueLink);
    return ops;
  }();
  return *registry;
}

/// The task that the values come from: two floats each, in the memory that is asked for.
class PeerTask final : public WorkerInterface {
 public:
  void RecvTensorAsync(RecvTensorCall* call, Cancellation*, Done done) override {
    memories.push_back(call->memory);
    auto value = Tensor::Allocate(*call->memory, DType::kFloat, Shape{2});
    if (!value.ok()) return done(value.status());
    value->data<float>()[0] = 3;
    value->data<float>()[1] = 4;
    call->tensor = *std::move(value);
    done(OkStatus());
  }
  void GetStatusAsync(const GetStatusRequest&, GetStatusResponse*, Done done) override {
    done(OkStatus());
  }
  void CreateWorkerSessionAsync(const CreateWorkerSessionRequest&, CreateWorkerSessionResponse*,
                                Done done) override {
    done(OkStatus());
  }
  void DeleteWorkerSessionAsync(const DeleteWorkerSessionRequest&, DeleteWorkerSessionResponse*,
                                Done done) override {
    done(OkStatus());
  }
  void RegisterGraphAsync(const RegisterGraphRequest&, RegisterGraphResponse*, Done done) override {
    done(OkStatus());
  }
  void DeregisterGraphAsync(const DeregisterGraphRequest&, DeregisterGraphResponse*,
                            Done done) override {
    done(OkStatus());
  }
  void RunGraphAsync(RunGraphCall*, Cancellation*, Done done) override { done(OkStatus()); }
  void CleanupGraphAsync(const CleanupGraphRequest&, CleanupGraphResponse*, Done done) override {
    done(OkStatus());
  }
  void CleanupAllAsync(const CleanupAllRequest&, CleanupAllResponse*, Done done) override {
    done(OkStatus());
  }
  void CompleteGroupAsync(const CompleteGroupRequest&, CompleteGroupResponse*, Cancellation*,
                          Done done) override {
    done(OkStatus());
  }
  void LoggingAsync(const LoggingRequest&, LoggingResponse*, Done done) override {
    done(OkStatus());
  }

  std::vector<Allocator*> memories;
};

class OnePeer final : public WorkerDirectory {
 public:
  StatusOr<std::shared_ptr<WorkerInterface>> Get(const std::string&) override { return peer; }
  std::string Address(const std::string&) const override { return "here"; }
  const std::shared_ptr<PeerTask> peer = std::make_shared<PeerTask>();
};

/// A worker with a CPU and the simulated device.
class DeviceTransfersTest : public ::testing::Test {
 protected:
  DeviceTransfersTest() {
    WorkerEnvironment environment{kOwnTask,
                                  {&cpu_, &gpu_, &other_gpu_},
                                  &OpsWithLink(),
                                  &pool_,
                                  &directory_,
                                  &MachineClock(),
                                  {},
                                  nullptr};
    worker_ = std::make_unique<Worker>(environment);
  }
  ~DeviceTransfersTest() override { worker_->Shutdown(); }

  /// A value of the peer's, wanted on `device`.
  Output Receive(const std::string& device, const std::string& tensor) {
    return {Add("_Recv", device, EdgeAttrs("tensor_type", kPeer, 1, device, tensor), {}), 0};
  }
  void Send(Output value, const std::string& tensor) {
    const std::string device = value.node->assigned_device();
    Add("_Send", device, EdgeAttrs("T", device, IncarnationOf(device), kPeer, tensor), {value});
  }
  Output On(const std::string& device, const std::string& op, Output x) {
    AttributeMap attrs;
    if (op != "Link") attrs.Set("T", DType::kFloat);
    return {Add(op, device, attrs, {x}), 0};
  }
  Node* Add(const std::string& op, const std::string& device, const AttributeMap& attrs,
            const std::vector<Endpoint>& inputs) {
    Node* const node = graph_.AddNode(graph_.UniqueName(op), op, attrs, inputs).value();
    node->set_requested_device(device);
    node->set_assigned_device(device);
    return node;
  }
  static AttributeMap EdgeAttrs(const std::string& type, const std::string& from,
                                uint64_t incarnation, const std::string& to,
                                const std::string& tensor) {
    return {{type, DType::kFloat}, {"tensor_name", tensor},
            {"send_device", from}, {"send_device_incarnation", static_cast<int64_t>(incarnation)},
            {"recv_device", to},   {"client_terminated", false}};
  }
  uint64_t IncarnationOf(const std::string& device) {
    if (device == kOtherGpu) return other_gpu_.incarnation();
    return device == kGpu ? gpu_.incarnation() : cpu_.incarnation();
  }

  /// Starts step 1 of the graph.
  void Start() {
    RegisterGraphRequest request;
    ASSERT_OK(GraphToProto(graph_, request.mutable_graph_def(), {true}));
    RegisterGraphResponse response;
    Status status;
    worker_->RegisterGraphAsync(request, &response, [&](Status s) { status = std::move(s); });
    ASSERT_OK(status);
    run_.graph_handle = response.graph_handle();
    run_.step_id = 1;
    worker_->RunGraphAsync(&run_, nullptr, [this](Status s) {
      ended_ = std::move(s);
      over_ = true;
    });
  }
  Status End() {
    while (!over_) std::this_thread::yield();
    return ended_;
  }
  /// What the step sends to the peer.
  struct Fetch {
    RecvTensorCall call;
    Status status;
    std::atomic<bool> over{false};
  };
  std::unique_ptr<Fetch> FetchFrom(const std::string& device, const std::string& tensor) {
    auto fetch = std::make_unique<Fetch>();
    fetch->call.step_id = 1;
    fetch->call.key = RendezvousKey{device, IncarnationOf(device), kPeer, tensor, 0, 0}.ToString();
    worker_->RecvTensorAsync(&fetch->call, nullptr, [f = fetch.get(), tensor](Status s) {
      f->status = std::move(s);
      if (tensor == "first") Chain::Current().first_has_left = true;
      f->over = true;
    });
    return fetch;
  }

  SimulatedDriver& driver_ = *new SimulatedDriver(11);
  std::shared_ptr<ResourceStore> resources_ = std::make_shared<ResourceStore>();
  CpuDevice cpu_{kCpuOfTask, resources_};
  StreamDevice gpu_{kGpu, kCuda, driver_, 1 << 30, resources_};
  StreamDevice other_gpu_{kOtherGpu, kCuda, *new SimulatedDriver(12), 1 << 30, resources_};
  ThreadPool pool_{1};
  OnePeer directory_;
  Graph graph_{OpsWithLink()};
  std::unique_ptr<Worker> worker_;
  RunGraphCall run_;
  Status ended_;
  std::atomic<bool> over_ = false;
};

TEST_F(DeviceTransfersTest, WhatComesForTheDeviceIsPutWhereItsCopiesRunFrom) {
  Send(On(kGpu, "Neg", Receive(kGpu, "weights")), "gradients");
  Start();
  const auto fetch = FetchFrom(kGpu, "gradients");
  ASSERT_OK(End());
  EXPECT_EQ(directory_.peer->memories, std::vector<Allocator*>{&driver_.staging()});
  ASSERT_TRUE(fetch->over);
  EXPECT_EQ(fetch->call.tensor.data<float>()[1], -4);
  // What leaves is sent from such memory, too.
  EXPECT_EQ(&fetch->call.tensor.allocator(), &driver_.staging());
  EXPECT_GT(driver_.pinned().bytes_in_use(), 0);
  EXPECT_OK(driver_.status());
}

TEST_F(DeviceTransfersTest, WhatComesForTheCpuBesideItIsPutIntoOrdinaryMemory) {
  Send(On(kCpuOfTask, "Neg", Receive(kCpuOfTask, "weights")), "gradients");
  Start();
  ASSERT_OK(End());
  EXPECT_EQ(directory_.peer->memories, std::vector<Allocator*>{&CpuAllocator()});
}

TEST_F(DeviceTransfersTest, WhatIsFedByAMasterElsewhereIsPutThereToo) {
  RunGraphRequest request;
  for (const char* const device : {kGpu, kCpuOfTask}) {
    NamedTensorProto* const fed = request.add_send();
    fed->set_name(RendezvousKey{device, 1, device, "x:0", 0, 0}.ToString());
    fed->mutable_tensor()->set_dtype(DT_FLOAT);
    fed->mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(2);
    fed->mutable_tensor()->add_float_val(7);
  }
  RunGraphCall call;
  ASSERT_OK(ReadRunGraphRequest(request, worker_->arrival_memory(), &call));
  EXPECT_EQ(call.send[0].second.data<float>()[1], 7);
  EXPECT_EQ(&call.send[0].second.allocator(), &driver_.staging());
  EXPECT_EQ(&call.send[1].second.allocator(), &CpuAllocator());
}

TEST_F(DeviceTransfersTest, AKeyThatIsNoneIsForOrdinaryMemory) {
  for (const char* const key : {"", ";", "a;b", "a;b;c", "a;b;/device:GPU:2;d;0:0"}) {
    EXPECT_EQ(&worker_->arrival_memory().For(key), &CpuAllocator()) << key;
  }
}

TEST_F(DeviceTransfersTest, AGradientLeavesBeforeTheKernelsBehindItHaveRun) {
  Output x = On(kGpu, "Link", Receive(kGpu, "weights"));
  Send(x, "first");
  for (int i = 1; i < Chain::kLinks; ++i) x = On(kGpu, "Link", x);
  Send(x, "last");
  const auto first = FetchFrom(kGpu, "first"), last = FetchFrom(kGpu, "last");
  Start();
  ASSERT_OK(End());
  ASSERT_TRUE(first->over && last->over);
  ASSERT_OK(first->status);
  EXPECT_EQ(first->call.tensor.data<float>()[0], 3);
  EXPECT_FALSE(Chain::Current().waited_in_vain);
  EXPECT_EQ(Chain::Current().run, Chain::kLinks);
  EXPECT_OK(driver_.status());
}

TEST_F(DeviceTransfersTest, AValueInADevicesMemoryIsHandedToNobodyOutsideOfTheStep) {
  TransferLog transfers;
  const auto step = std::make_shared<TaskRun>(1, transfers, Clock::Time());
  const auto refused = IsError(StatusCode::kInvalidArgument, "from device to device");
  Status status;
  step->HandOutAsync("asked first", [&](const Status& s, const Tensor& value, bool) {
    status = s;
    EXPECT_FALSE(value.valid());
  });
  const Tensor value = gpu_.CopyToDevice(Tensor::Scalar(1.0f)).value();
  ASSERT_OK(step->Send("asked first", value, false));
  EXPECT_THAT(status, refused);
  ASSERT_OK(step->Send("made first", value, false));
  Tensor taken;
  bool dead = false;
  EXPECT_THAT(step->HandOut("made first", &taken, &dead), refused);
  EXPECT_FALSE(taken.valid());
}

TEST_F(DeviceTransfersTest, WhatIsSentFromElsewhereIsNotTakenForADevicesOwn) {
  AttributeMap edge = EdgeAttrs("tensor_type", kGpu, gpu_.incarnation(), kOtherGpu, "between");
  On(kOtherGpu, "Neg", {Add("_RecvFromPeer", kOtherGpu, edge, {}), 0});
  run_.send.emplace_back(
      RendezvousKey{kGpu, gpu_.incarnation(), kOtherGpu, "between", 0, 0}.ToString(),
      Tensor::Scalar(1.0f));
  Start();
  EXPECT_THAT(End(), IsError(StatusCode::kInternal, "received a tensor in host memory"));
}

}  // namespace
}  // namespace tenon::testing
