// SPDX-License-Identifier: Apache-2.0
//
// The devices of GPUs, on a fake of CUDA's runtime with two of them.
#include "runtime/cuda/gpus.h"
#include "ops/cuda/device_kind.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/build/building.h"
#include "core/device/device_queue.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/register.h"
#include "runtime/accelerator/kernels.h"
#include "runtime/session/local_session.h"
#include "tests/runtime/cuda/fake_runtime.h"
#include "tests/testing/status_matchers.h"

namespace tenon::cuda {
namespace {

using testing::IsError;

constexpr char kName[] = "/job:localhost/replica:0/task:0/device:GPU:0";

TEST(GpusTest, AreListedWithoutUsingThem) {
  const auto gpus = ListGpus({});
  ASSERT_OK(gpus.status());
  ASSERT_EQ(gpus->size(), 2u);
  EXPECT_EQ((*gpus)[1].name, "Fake GPU");
  EXPECT_EQ((*gpus)[1].memory_bytes, fake::kTotalMemory);
  EXPECT_EQ((*gpus)[1].pci_bus_id, "0000:01:00.0");
}

TEST(GpusTest, TheVisibleOnesAreChosenAndOrdered) {
  const auto gpus = ListGpus({.visible_devices = "1,0"});
  ASSERT_OK(gpus.status());
  EXPECT_EQ((*gpus)[0].pci_bus_id, "0000:01:00.0");
  EXPECT_EQ((*gpus)[1].pci_bus_id, "0000:00:00.0");
  EXPECT_EQ(ListGpus({.visible_devices = "1"})->size(), 1u);
  for (const char* wrong : {"2", "a", "0,", "-1", "0 ,1", "99999999999"}) {
    EXPECT_THAT(ListGpus({.visible_devices = wrong}).status(),
                IsError(StatusCode::kInvalidArgument, "wanted numbers from 0 to 1"))
        << wrong;
  }
  EXPECT_THAT(ListGpus({.visible_devices = "1,1"}).status(),
              IsError(StatusCode::kInvalidArgument, "name 1 twice"));
  EXPECT_THAT(ListGpus({.memory_fraction = 1.5}).status(),
              IsError(StatusCode::kInvalidArgument, "wanted 0 to 1"));
}

/// The device GPU:0 of a session, with its resources.
std::shared_ptr<Device> Gpu(const std::shared_ptr<ResourceStore>& resources) {
  auto device = MakeGpuDevice({kCuda, 0, kName, resources, {}, {}});
  EXPECT_OK(device.status());
  return *std::move(device);
}

/// A kernel: the fake's memory is the host's, its stream runs functions.
Status Negate(KernelContext& ctx) {
  struct Work {
    const float* x;
    float* y;
    int64_t count;
    static void Run(void* argument) {
      const std::unique_ptr<Work> work(static_cast<Work*>(argument));
      for (int64_t i = 0; i < work->count; ++i) work->y[i] = -work->x[i];
    }
  };
  const Tensor& x = ctx.input(0);
  if (x.buffer()->IsHostMemory()) return Internal("x is not on the GPU");
  TENON_ASSIGN_OR_RETURN(Tensor* const y, ctx.AllocateOutput(0, x.shape()));
  auto* const stream = static_cast<cudaStream_t>(ctx.device().queue()->stream());
  cudaLaunchHostFunc(stream, Work::Run,
                     new Work{x.data<float>(), y->data<float>(), x.num_elements()});
  return OkStatus();
}

const OpRegistry& Ops() {
  static const OpRegistry* const ops = [] {
    auto* made = new OpRegistry;
    RegisterLibraryOps(*made);
    RegisterAcceleratorKernels(*made, kCuda);
    made->Get("Neg").Kernel(kCuda, Negate);
    return made;
  }();
  return *ops;
}

TEST(GpusTest, ASessionMovesValuesThroughOne) {
  Graph graph(Ops());
  {
    GraphBuilding building(graph);
    const DeviceScope on("/device:GPU:0");
    Neg(Neg(Placeholder(DType::kFloat, {-1}, {.name = "x"})), {.name = "y"});
    Neg(Const({-3.0f, 1.0f}), {.name = "three"});
    ASSERT_OK(building.status());
  }
  Tensor kept;
  for (int round = 0; round < 2; ++round) {
    LocalSessionOptions options;
    options.resources = std::make_shared<ResourceStore>();
    options.other_devices.push_back(Gpu(options.resources));
    options.passes.disabled = {"constant-folding"};
    EXPECT_EQ(options.other_devices[0]->name(), kName);
    const auto session = MakeLocalSession(graph, options);
    ASSERT_OK(session.status());
    for (const int64_t size : {3, 100000, 3000000}) {
      Tensor x = *Tensor::Allocate(CpuAllocator(), DType::kFloat, Shape({size}));
      for (int64_t i = 0; i < size; ++i) x.data<float>()[i] = static_cast<float>(i);
      const auto fetched = (*session)->Run({{"x", x}}, {"y", "three"});
      ASSERT_OK(fetched.status());
      EXPECT_EQ((*fetched)[1].data<float>()[0], 3.0f);
      EXPECT_EQ(std::memcmp((*fetched)[0].raw_data(), x.raw_data(), x.num_bytes()), 0);
      EXPECT_TRUE((*fetched)[0].buffer()->IsHostMemory());
      kept = (*fetched)[0];
    }
  }
  EXPECT_EQ(kept.data<float>()[17], 17.0f);  // pinned memory, after its session
}

TEST(GpusTest, ASessionMovesValuesFromOneToAnother) {
  Graph graph(Ops());
  {
    GraphBuilding building(graph);
    Output y = Placeholder(DType::kFloat, {-1}, {.name = "x"});
    for (const char* const device : {"/device:GPU:0", "/device:GPU:1", "/device:GPU:0"}) {
      const DeviceScope on(device);
      y = Neg(y);
    }
    Identity(y, {.name = "y"});
    ASSERT_OK(building.status());
  }
  LocalSessionOptions options;
  options.resources = std::make_shared<ResourceStore>();
  options.other_devices.push_back(Gpu(options.resources));
  auto second = MakeGpuDevice(
      {kCuda, 1, "/job:localhost/replica:0/task:0/device:GPU:1", options.resources, {}, {}});
  ASSERT_OK(second.status());
  options.other_devices.push_back(*std::move(second));
  const auto session = MakeLocalSession(graph, options);
  ASSERT_OK(session.status());
  const auto before = fake::CountPeerCopies();
  for (int round = 0; round < 10; ++round) {
    Tensor x = *Tensor::Allocate(CpuAllocator(), DType::kFloat, Shape({10000}));
    std::fill_n(x.data<float>(), 10000, static_cast<float>(round));
    const auto fetched = (*session)->Run({{"x", x}}, {"y"});
    ASSERT_OK(fetched.status());
    EXPECT_EQ((*fetched)[0].data<float>()[9999], static_cast<float>(-round));
  }
  const auto after = fake::CountPeerCopies();
  EXPECT_EQ(after.right - before.right, 20);
  EXPECT_EQ(after.wrong, before.wrong);
}

TEST(GpusTest, TensorsOutliveTheDeviceOfTheirSession) {
  Tensor host = *Tensor::Allocate(CpuAllocator(), DType::kFloat, Shape({1 << 20}));
  std::fill_n(host.data<float>(), host.num_elements(), 1.0f);
  const int64_t before = fake::BytesInUse();
  Tensor kept;
  {
    const auto device = Gpu(std::make_shared<ResourceStore>());
    EXPECT_EQ(device->kind(), kCuda);
    EXPECT_EQ(&device->resources(), &device->host().resources());
    EXPECT_EQ(device->host().name(), kName);
    kept = *device->queue()->CopyToDevice(host);
    ASSERT_OK(device->queue()->Wait());
  }
  EXPECT_EQ(fake::BytesInUse() - before, 4 << 20);
  kept = Tensor();
  EXPECT_EQ(fake::BytesInUse(), before);
}

TEST(GpusTest, AStepWithoutMemorySaysWhoHasIt) {
  Graph graph(Ops());
  {
    GraphBuilding building(graph);
    const DeviceScope on("/device:GPU:0");
    Neg(Neg(Placeholder(DType::kFloat, {-1}, {.name = "x"})), {.name = "y"});
    ASSERT_OK(building.status());
  }
  LocalSessionOptions options;
  options.resources = std::make_shared<ResourceStore>();
  options.other_devices.push_back(Gpu(options.resources));
  const auto session = MakeLocalSession(graph, options);
  ASSERT_OK(session.status());
  Allocator& memory = options.other_devices[0]->allocator();
  const size_t most = fake::kTotalMemory - fake::BytesInUse() - 1000;
  void* const others = memory.Allocate(most);
  ASSERT_NE(others, nullptr);
  const Tensor x = *Tensor::Allocate(CpuAllocator(), DType::kFloat, Shape({1000}));
  const Status status = (*session)->Run({{"x", x}}, {"y"}).status();
  EXPECT_THAT(
      status,
      IsError(StatusCode::kResourceExhausted,
              "OOM when allocating tensor with shape[1000] and type float on /device:GPU:0: "
              "of the 1.0 GiB of the GPU 0 (Fake GPU), this process's tensors hold 1.0 GiB "
              "and may hold 1.0 GiB"));
  EXPECT_THAT(std::string(Message(status)),
              ::testing::HasSubstr("; the 0 variables and other resources of this task"));
  memory.Free(others, most);
  EXPECT_OK((*session)->Run({{"x", x}}, {"y"}).status());
}

TEST(GpusTest, OneThatIsNotVisibleIsRefused) {
  const auto resources = std::make_shared<ResourceStore>();
  EXPECT_THAT(MakeGpuDevice({kCuda, 2, kName, resources, {}, {}}).status(),
              IsError(StatusCode::kInvalidArgument, "found GPU 2, wanted one of 2"));
}

}  // namespace
}  // namespace tenon::cuda
