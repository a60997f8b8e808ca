// SPDX-License-Identifier: Apache-2.0
//
// A device with memory of its own, run by a SimulatedDriver; and that this finds the mistakes that
// code for such devices has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "core/building.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "runtime/accelerator/stream_device.h"
#include "tests/testing/simulated_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kName[] = "/job:localhost/replica:0/task:0/device:GPU:0";

/// A device whose driver is its own, and lives on as drivers do.
struct SimulatedDevice {
  SimulatedDriver& driver = *new SimulatedDriver(7);
  StreamDevice device{kName, driver, 1 << 30, std::make_shared<ResourceStore>()};

  using Done = std::function<void(StatusOr<Tensor>)>;
  static StatusOr<Tensor> Await(const std::function<void(Done)>& start) {
    StatusOr<Tensor> result = Internal("not called");
    Mutex mu;
    CondVar cv;
    bool over = false;
    start([&](StatusOr<Tensor> copy) {
      MutexLock lock(mu);
      result = std::move(copy);
      over = true;
      cv.NotifyOne();
    });
    MutexLock lock(mu);
    while (!over) cv.Wait(mu);
    return result;
  }
  StatusOr<Tensor> ToHost(const Tensor& t) {
    return Await([&](Done done) { device.CopyToHost(t, 1, std::move(done)); });
  }
  StatusOr<Tensor> ToPeer(const Tensor& t, SimulatedDevice& peer) {
    return Await([&](Done done) { device.CopyToPeer(t, peer.device, 1, std::move(done)); });
  }
  /// Queues a kernel that adds one to each of the floats.
  void AddOne(const Tensor& from, Tensor* to, Stream stream = Stream::kCompute) {
    const float* const in = from.data<float>();
    float* const out = to->data<float>();
    const int64_t n = from.num_elements();
    driver.Launch(stream, {{in, from.num_bytes(), false}, {out, to->num_bytes(), true}},
                  [this, in, out, n] {
                    auto* const source = static_cast<const float*>(driver.OnDevice(in));
                    auto* const target = static_cast<float*>(driver.OnDevice(out));
                    for (int64_t i = 0; i < n; ++i) target[i] = source[i] + 1;
                  });
  }
  Tensor New(const Shape& shape) {
    return Tensor::Allocate(device.allocator(), DType::kFloat, shape).value();
  }
};

/// What `build` gives on that device.
Output On(const char* device, const std::function<Output()>& build) {
  const DeviceScope on(device);
  return build();
}

Tensor Numbers(int64_t n) {
  Tensor t(DType::kFloat, {n});
  for (int64_t i = 0; i < n; ++i) t.data<float>()[i] = static_cast<float>(i);
  return t;
}

TEST(StreamDeviceTest, ValuesComeBackAsTheyWent) {
  SimulatedDevice d;
  for (const int64_t n : {0, 1, 1000, 1 << 20}) {
    const auto there = d.device.CopyToDevice(Numbers(n));
    ASSERT_OK(there.status());
    EXPECT_FALSE(there->IsHostMemory());
    const auto back = d.ToHost(*there);
    ASSERT_OK(back.status());
    EXPECT_TRUE(back->Equals(Numbers(n))) << n;
  }
}

TEST(StreamDeviceTest, KernelsAreInOrderWithEachOtherAndWithCopies) {
  SimulatedDevice d;
  for (int round = 0; round < 50; ++round) {
    Tensor value = d.device.CopyToDevice(Numbers(100)).value();
    for (int i = 0; i < 5; ++i) {
      Tensor next = d.New({100});
      d.AddOne(value, &next);
      value = std::move(next);  // the one before is given back while the kernel waits
    }
    const auto back = d.ToHost(value);
    ASSERT_OK(back.status());
    EXPECT_EQ(back->data<float>()[7], 12);
  }
}

TEST(StreamDeviceTest, ACopyWithinTheMemoryIsInOrderToo) {
  SimulatedDevice d;
  Tensor value = d.device.CopyToDevice(Numbers(100)).value();
  const Tensor copy = value.Copy().value();
  d.AddOne(value, &value);
  EXPECT_EQ(d.ToHost(copy)->data<float>()[7], 7);
  EXPECT_EQ(d.ToHost(value)->data<float>()[7], 8);
}

TEST(StreamDeviceTest, ValuesGoToAnotherDeviceInTheOrderOfBoth) {
  SimulatedDevice a, b;
  for (int round = 0; round < 50; ++round) {
    Tensor here = a.New({100}), there = b.New({100});
    a.AddOne(a.device.CopyToDevice(Numbers(100)).value(), &here);
    auto arrived = a.ToPeer(here, b);
    ASSERT_OK(arrived.status());
    EXPECT_EQ(&arrived->allocator(), &b.device.allocator());
    a.AddOne(here, &here);  // not before it has been read
    b.AddOne(*arrived, &there);
    arrived = Tensor();
    EXPECT_EQ(a.ToHost(here)->data<float>()[7], 9);
    EXPECT_EQ(b.ToHost(there)->data<float>()[7], 9);
  }
  EXPECT_OK(a.ToPeer(a.New({0}), b).status());
  EXPECT_OK(a.driver.status());
  EXPECT_OK(b.driver.status());
}

TEST(StreamDeviceTest, AValueForWhichAnotherDeviceHasNoMemoryIsAnError) {
  SimulatedDevice a;
  auto& driver = *new SimulatedDriver(3, 1 << 20);
  StreamDevice small("/device:GPU:1", driver, 1 << 20, std::make_shared<ResourceStore>());
  const Tensor value = a.device.CopyToDevice(Numbers(1 << 19)).value();
  const auto arrived = SimulatedDevice::Await(
      [&](SimulatedDevice::Done done) { a.device.CopyToPeer(value, small, 1, std::move(done)); });
  EXPECT_THAT(arrived.status(), IsError(StatusCode::kResourceExhausted, "on /device:GPU:1"));
}

TEST(StreamDeviceTest, AFailedKernelIsTheErrorOfItsStepOnly) {
  SimulatedDevice d;
  const Tensor value = d.device.CopyToDevice(Numbers(4)).value();
  const StepCheck check = d.device.AddCheck(
      1, [](uint64_t found) { return InvalidArgument("index ", found, " is wrong"); });
  d.driver.Launch(Stream::kCompute, {}, [check] { *check.word = 5; });
  EXPECT_EQ(d.ToHost(value).status(), InvalidArgument("index 5 is wrong"));
  SimulatedDevice other;
  EXPECT_EQ(d.ToPeer(value, other).status(), InvalidArgument("index 5 is wrong"));
  const auto end = [&](int64_t step) {
    Status result = Internal("not called");
    d.device.EndStep(step, [&](Status s) { result = std::move(s); });
    EXPECT_OK(d.device.Wait());
    return result;
  };
  EXPECT_OK(end(2));
  EXPECT_EQ(end(1), InvalidArgument("index 5 is wrong"));
  EXPECT_OK(end(1));
}

TEST(StreamDeviceTest, TheChecksOfAStepHaveOneWordForItsFailure) {
  SimulatedDevice d;
  const auto describe = [](uint64_t found) { return InvalidArgument("found ", found); };
  EXPECT_EQ(d.device.FailureOf(1), nullptr);
  const StepCheck first = d.device.AddCheck(1, describe), second = d.device.AddCheck(1, describe),
                  other = d.device.AddCheck(2, describe);
  EXPECT_EQ(d.device.FailureOf(1), first.failure);
  EXPECT_EQ(d.device.FailureOf(1), second.failure);
  EXPECT_EQ(d.device.FailureOf(2), other.failure);
  EXPECT_EQ(
      std::set({first.failure->word, first.word, second.word, other.failure->word, other.word})
          .size(),
      5);
  EXPECT_EQ(*first.failure->word, 0);
  const auto end = [&](int64_t step) {
    d.device.EndStep(step, [](const Status&) {});
    EXPECT_OK(d.device.Wait());
  };
  *first.word = *first.failure->word = 1;
  *other.word = *other.failure->word = 1;
  end(1);
  EXPECT_EQ(d.device.FailureOf(1), nullptr);
  EXPECT_EQ(d.device.FailureOf(2), other.failure);
  // The words of the next step are 0 again, whatever was in their memory.
  EXPECT_EQ(*d.device.AddCheck(3, describe).failure->word, 0);
  end(2);
  end(3);
}

TEST(StreamDeviceTest, MemoryIsGivenBackAndRunsOut) {
  auto& driver = *new SimulatedDriver(3, 1 << 20);
  StreamDevice device(kName, driver, 1 << 20, std::make_shared<ResourceStore>());
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK(device.CopyToDevice(Numbers(1 << 17)).status());
    ASSERT_OK(device.Wait());
  }
  EXPECT_EQ(device.allocator().bytes_in_use(), 0);
  EXPECT_EQ(device.CopyToDevice(Numbers(1 << 19)).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(StreamRecordingTest, WhatIsRecordedIsDoneWhenItIsQueued) {
  SimulatedDevice d;
  Tensor value = d.device.CopyToDevice(Numbers(100)).value();
  auto recording = d.device.Record(1).value();
  Tensor result;
  {
    Device& device = recording->device();
    Tensor ones = device.queue()->CopyToDevice(Numbers(100)).value(), between;
    d.AddOne(ones, &ones);  // in place: each repetition copies it anew
    between = Tensor::Allocate(device.allocator(), DType::kFloat, {100}).value();
    d.AddOne(ones, &between);
    result = Tensor::Allocate(device.allocator(), DType::kFloat, {100}).value();
    d.AddOne(between, &result);
    d.AddOne(value, &value);
  }
  ASSERT_OK(recording->Finish());
  EXPECT_EQ(d.ToHost(value)->data<float>()[7], 7);
  for (int i = 1; i < 4; ++i) {
    ASSERT_TRUE(recording->Queue(i, nullptr));
    EXPECT_FALSE(recording->Queue(i, nullptr)) << "its step is not over";
    EXPECT_EQ(d.ToHost(result)->data<float>()[7], 10);
    EXPECT_EQ(d.ToHost(value)->data<float>()[7], 7 + i);
    d.device.EndStep(i, [](const Status&) {});
    ASSERT_OK(d.device.Wait());
  }
  recording = nullptr;  // before what is in its memory
  EXPECT_EQ(d.ToHost(result.Copy().value())->data<float>()[7], 10);
}

TEST(StreamRecordingTest, ItsChecksAreThoseOfEachStep) {
  SimulatedDevice d;
  auto recording = d.device.Record(1).value();
  EXPECT_EQ(recording->device().queue()->FailureOf(1), nullptr);
  const StepCheck check = recording->device().queue()->AddCheck(
      1, [](uint64_t word) { return InvalidArgument("found ", word); });
  bool fails = false;
  d.driver.Launch(Stream::kCompute, {}, [&] {
    if (fails) *check.word = *check.failure->word = 3;
  });
  ASSERT_OK(recording->Finish());
  for (int i = 1; i < 6; ++i) {
    fails = i % 2 == 0;
    ASSERT_TRUE(recording->Queue(i, nullptr));
    ASSERT_OK(d.device.Wait());
    EXPECT_EQ(*d.device.FailureOf(i)->word, fails ? 3 : 0);
    Status result;
    d.device.EndStep(i, [&](Status s) { result = std::move(s); });
    ASSERT_OK(d.device.Wait());
    EXPECT_EQ(result, fails ? InvalidArgument("found 3") : OkStatus());
  }
}

TEST(StreamRecordingTest, AStepThatHasFailedBeforeIsKnownToIt) {
  SimulatedDevice d;
  const StepCheck before = d.device.AddCheck(1, [](uint64_t) { return OkStatus(); });
  auto recording = d.device.Record(1).value();
  const StepFailure* const failure = recording->device().queue()->FailureOf(1);
  ASSERT_NE(failure, nullptr);
  std::vector<uint64_t> seen;
  d.driver.Launch(Stream::kCompute, {}, [&] { seen.push_back(*failure->word); });
  ASSERT_OK(recording->Finish());
  *before.failure->word = 1;
  ASSERT_TRUE(recording->Queue(1, nullptr));
  d.device.EndStep(1, [](const Status&) {});
  ASSERT_OK(d.device.Wait());
  ASSERT_TRUE(recording->Queue(2, nullptr));
  ASSERT_OK(d.device.Wait());
  EXPECT_THAT(seen, ::testing::ElementsAre(1, 0));
}

TEST(StreamRecordingTest, WhatWouldWaitOrNeedsOtherMemoryCannotBeRecorded) {
  SimulatedDevice d;
  auto waits = d.device.Record(1).value();
  EXPECT_FALSE(waits->device().queue()->Wait().ok());
  EXPECT_EQ(waits->Finish().code(), absl::StatusCode::kFailedPrecondition);
  auto other = d.device.Record(1).value();
  EXPECT_FALSE(Tensor::Allocate(d.device.allocator(), DType::kFloat, {4}).ok());
  EXPECT_EQ(other->Finish().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_OK(Tensor::Allocate(d.device.allocator(), DType::kFloat, {4}).status());
  // One that is given up half-way.
  (void)d.device.Record(1).value();
  EXPECT_OK(Tensor::Allocate(d.device.allocator(), DType::kFloat, {4}).status());
}

TEST(StreamRecordingTest, ItsMemoryIsGivenBackBeforeThereIsNone) {
  auto& driver = *new SimulatedDriver(3, 1 << 20);
  StreamDevice device(kName, driver, 1 << 20, std::make_shared<ResourceStore>());
  const auto large = [](Allocator& memory) {
    return Tensor::Allocate(memory, DType::kFloat, {150'000});
  };
  auto recording = device.Record(1).value();
  ASSERT_OK(large(recording->device().allocator()).status());
  ASSERT_OK(recording->Finish());
  ASSERT_TRUE(recording->Queue(1, nullptr));
  EXPECT_FALSE(large(device.allocator()).ok()) << "it is in use";
  device.EndStep(1, [](const Status&) {});
  ASSERT_OK(device.Wait());
  StatusOr<Tensor> tensor = large(device.allocator());
  for (int i = 0; i < 100 && !tensor.ok(); ++i) {  // behind what is queued
    ASSERT_OK(device.Wait());
    tensor = large(device.allocator());
  }
  EXPECT_OK(tensor.status());
  EXPECT_FALSE(recording->Queue(2, nullptr));
}

// Mistakes, one each, in code as plugins and kernels have it.

class PlantedFaultTest : public ::testing::Test {
 protected:
  /// What the driver says once all is done.
  std::string Found() {
    for (const Stream s : {Stream::kToDevice, Stream::kToHost, Stream::kCompute}) {
      d_.driver.WaitFor(Stream::kCompute, s);
    }
    return std::string(Message(d_.device.Wait()));
  }
  SimulatedDevice d_;
};

TEST_F(PlantedFaultTest, KernelsThatDoNotWaitForACopyToTheDevice) {
  const Tensor host = Numbers(100);
  Tensor value = d_.New({100}), result = d_.New({100});
  d_.driver.WaitFor(Stream::kToDevice, Stream::kCompute);
  d_.driver.Copy(Stream::kToDevice, value.raw_data(), host.raw_data(), host.num_bytes());
  d_.AddOne(value, &result);
  EXPECT_THAT(Found(),
              ::testing::AnyOf(HasSubstr("nothing orders"), HasSubstr("nothing has written")));
}

TEST_F(PlantedFaultTest, ACopyToTheHostThatDoesNotWaitForTheKernel) {
  const Tensor value = d_.device.CopyToDevice(Numbers(100)).value();
  Tensor result = d_.New({100}), host(DType::kFloat, {100});
  d_.AddOne(value, &result);
  d_.driver.Copy(Stream::kToHost, host.raw_data(), result.raw_data(), result.num_bytes());
  EXPECT_THAT(Found(), HasSubstr("nothing orders that 400 bytes are read on stream 2 behind"));
}

TEST_F(PlantedFaultTest, ACopyToAnotherDeviceThatDoesNotWaitForTheKernel) {
  const Tensor value = d_.device.CopyToDevice(Numbers(100)).value();
  SimulatedDevice other;
  Tensor result = d_.New({100});
  void* const there = other.driver.memory().Allocate(Stream::kToDevice, 400);
  d_.AddOne(value, &result);
  d_.driver.CopyToPeer(Stream::kToHost, other.driver, Stream::kToDevice, there, result.raw_data(),
                       400);
  EXPECT_THAT(Found(), HasSubstr("nothing orders that 400 bytes are read on stream 2 behind"));
}

TEST_F(PlantedFaultTest, ACopyIntoMemoryThatAnotherDeviceHasNotGivenYet) {
  const Tensor value = d_.device.CopyToDevice(Numbers(100)).value();
  SimulatedDevice other;
  // Given to one stream, and waited for on another one.
  void* const there = other.driver.memory().Allocate(Stream::kToDevice, 400);
  d_.driver.WaitFor(Stream::kToHost, Stream::kCompute);
  d_.driver.CopyToPeer(Stream::kToHost, other.driver, Stream::kToHost, there, value.raw_data(),
                       400);
  Found();
  EXPECT_THAT(std::string(Message(other.device.Wait())),
              HasSubstr("are written on stream 2 of another device behind what stream 1"));
}

TEST_F(PlantedFaultTest, AKernelThatDoesNotWaitForWhatComesFromAnotherDevice) {
  const Tensor value = d_.device.CopyToDevice(Numbers(100)).value();
  SimulatedDevice other;
  Tensor there = other.New({100}), result = other.New({100});
  d_.driver.WaitFor(Stream::kToHost, Stream::kCompute);
  d_.driver.CopyToPeer(Stream::kToHost, other.driver, Stream::kCompute, there.raw_data(),
                       value.raw_data(), 400);
  other.AddOne(there, &result);
  Found();
  EXPECT_THAT(std::string(Message(other.device.Wait())),
              ::testing::AnyOf(HasSubstr("of another device"), HasSubstr("nothing has written")));
}

TEST_F(PlantedFaultTest, AKernelThatOverwritesWhatIsStillBeingCopied) {
  Tensor value = d_.device.CopyToDevice(Numbers(100)).value();
  Tensor host(DType::kFloat, {100});
  d_.driver.WaitFor(Stream::kToHost, Stream::kCompute);
  d_.driver.Copy(Stream::kToHost, host.raw_data(), value.raw_data(), value.num_bytes());
  d_.AddOne(value, &value);
  EXPECT_THAT(Found(), HasSubstr("nothing orders that 400 bytes are "));
}

TEST_F(PlantedFaultTest, MemoryThatIsGivenBackWhileACopyReadsIt) {
  Tensor value = d_.device.CopyToDevice(Numbers(100)).value();
  Tensor host(DType::kFloat, {100});
  d_.driver.WaitFor(Stream::kToHost, Stream::kCompute);
  d_.driver.Copy(Stream::kToHost, host.raw_data(), value.raw_data(), value.num_bytes());
  value = Tensor();
  EXPECT_THAT(Found(), ::testing::AnyOf(HasSubstr("not in use"), HasSubstr("nothing orders")));
}

TEST_F(PlantedFaultTest, AKernelThatIsQueuedBehindTheFreeingOfItsInput) {
  Tensor value = d_.device.CopyToDevice(Numbers(100)).value();
  Tensor result = d_.New({100});
  const Tensor view(DType::kFloat, {100},
                    WrapBuffer(
                        value.raw_data(), 400, [](void*) {}, nullptr));
  value = Tensor();
  d_.AddOne(view, &result);
  EXPECT_THAT(Found(), HasSubstr("400 bytes are read that are not in use"));
}

TEST_F(PlantedFaultTest, AHostTensorThatIsChangedBeforeItIsCopied) {
  Tensor host = Numbers(100);
  Tensor value = d_.New({100});
  d_.driver.WaitFor(Stream::kToDevice, Stream::kCompute);
  // Whatever is in front of it makes it late.
  d_.driver.Launch(Stream::kToDevice, {},
                   [] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); });
  d_.driver.Copy(Stream::kToDevice, value.raw_data(), host.raw_data(), host.num_bytes());
  host.data<float>()[3] = 77;
  EXPECT_THAT(Found(),
              HasSubstr("the host has changed or freed 400 bytes before they were copied"));
}

TEST_F(PlantedFaultTest, AHostTensorThatIsFreedBeforeItIsCopied) {
  Tensor value = d_.New({100});
  d_.driver.WaitFor(Stream::kToDevice, Stream::kCompute);
  d_.driver.Launch(Stream::kToDevice, {},
                   [] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); });
  {
    const Tensor staged = Tensor::Allocate(d_.driver.pinned(), DType::kFloat, Shape{100}).value();
    std::copy_n(Numbers(100).data<float>(), 100, const_cast<float*>(staged.data<float>()));
    d_.driver.Copy(Stream::kToDevice, value.raw_data(), staged.raw_data(), staged.num_bytes());
  }
  // The next one to stage something gets the same memory.
  Tensor next = Tensor::Allocate(d_.driver.pinned(), DType::kFloat, Shape{100}).value();
  std::fill_n(next.data<float>(), 100, 5.0f);
  EXPECT_THAT(Found(),
              HasSubstr("the host has changed or freed 400 bytes before they were copied"));
}

TEST_F(PlantedFaultTest, AKernelThatTakesAHostTensorForOneOfTheDevice) {
  const Tensor host = Numbers(100);
  const float* const in = host.data<float>();
  d_.driver.Launch(Stream::kCompute, {{in, host.num_bytes(), false}}, [] {});
  EXPECT_THAT(Found(), HasSubstr("400 bytes are read that are not in use"));
}

TEST_F(PlantedFaultTest, AKernelThatReadsWhatNobodyHasWritten) {
  const Tensor value = d_.New({100});
  Tensor result = d_.New({100});
  d_.AddOne(value, &result);
  EXPECT_THAT(Found(), HasSubstr("400 bytes are read that nothing has written"));
}

TEST_F(PlantedFaultTest, AKernelThatWritesBeyondTheEnd) {
  Tensor result = d_.New({100});
  float* const out = result.data<float>();
  d_.driver.Launch(Stream::kCompute, {{out, 400, true}},
                   [this, out] { static_cast<float*>(d_.driver.OnDevice(out))[100] = 1; });
  EXPECT_THAT(Found(), HasSubstr("something is written beyond the end of a block of 400 bytes"));
}

TEST_F(PlantedFaultTest, MemoryThatIsFreedTwice) {
  Allocator& memory = d_.device.allocator();
  void* const block = memory.Allocate(400);
  memory.Free(block, 400);
  memory.Free(block, 400);
  EXPECT_THAT(Found(), HasSubstr("memory is freed that is not in use"));
}

TEST_F(PlantedFaultTest, AHostThatReadsTheResultOfACopyTooSoon) {
  const Tensor value = d_.device.CopyToDevice(Numbers(100)).value();
  Tensor host(DType::kFloat, {100});
  host.data<float>()[7] = 7;  // what it would find by chance
  d_.driver.WaitFor(Stream::kToHost, Stream::kCompute);
  d_.driver.Launch(Stream::kToHost, {},
                   [] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); });
  d_.driver.Copy(Stream::kToHost, host.raw_data(), value.raw_data(), value.num_bytes());
  EXPECT_NE(host.data<float>()[7], 7);
  Found();
  EXPECT_EQ(host.data<float>()[7], 7);
}

using PlantedFaultDeathTest = PlantedFaultTest;

TEST_F(PlantedFaultDeathTest, AHostThatTouchesTheMemoryOfTheDevice) {
  Tensor value = d_.New({100});
  EXPECT_DEATH(value.data<float>()[3] = 1, "");
  EXPECT_DEATH(std::exit(value.data<float>()[3] == 0 ? 0 : 1), "");
}

class SimulatedSessionTest : public ::testing::Test {
 protected:
  std::unique_ptr<Session> Open() {
    auto session = MakeSimulatedSession(graph_);
    EXPECT_OK(session.status());
    return session.ok() ? *std::move(session) : nullptr;
  }
  Graph graph_{AllOps()};
  GraphBuilding building_{graph_};
};

TEST_F(SimulatedSessionTest, WhatNothingPutsElsewhereRunsOnTheDevice) {
  const Output x = Placeholder(DType::kFloat);
  const Output y = Mul(x, x);
  const auto session = Open();
  const int64_t before = SharedSimulatedDriver().launches();
  const auto square = session->Run<std::vector<float>>({{x, {2.0f, 3.0f}}}, y);
  ASSERT_OK(square.status());
  EXPECT_EQ((*square)[1], 9);
  // Two copies and a product.
  EXPECT_EQ(SharedSimulatedDriver().launches() - before, 3);
}

TEST_F(SimulatedSessionTest, AnErrorOnTheDeviceIsTheSteps) {
  const Output x = Placeholder(DType::kFloat);
  const Output checked = CheckNumerics(x, "the feed", {.name = "checked"});
  const auto session = Open();
  const auto failed =
      session->Run({{x, {1.0f, std::numeric_limits<float>::infinity()}}}, {checked});
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(failed.status())), HasSubstr("'checked' (CheckNumerics)"));
  EXPECT_OK(session->Run({{x, {1.0f}}}, {checked}).status());
}

TEST_F(SimulatedSessionTest, ReplicasOnSeveralDevicesShareVariables) {
  const Output w =
      On("/device:CPU:0", [] { return VariableV2(Shape{3}, DType::kFloat, {.name = "w"}); });
  const Output init = Assign(w, Const({1.0f, 2.0f, 3.0f}));
  std::vector<Output> gradients;
  for (const char* const device : {"/device:GPU:0", "/device:GPU:1"}) {
    gradients.push_back(On(device, [&] { return Square(Identity(w)); }));
  }
  const Output mean = On("/device:GPU:1", [&] { return Mul(AddN(gradients), 0.5f); });
  const Output train = AssignSub(w, mean);
  const auto session = Open();
  const int64_t before = SharedSimulatedDriver(1).launches();
  ASSERT_OK(session->Run({}, {}, {init}).status());
  ASSERT_OK(session->Run({}, {}, {train}).status());
  const auto value = session->Run<std::vector<float>>({}, w);
  ASSERT_OK(value.status());
  EXPECT_EQ(*value, (std::vector<float>{0, -2, -6}));
  EXPECT_GT(SharedSimulatedDriver(1).launches(), before);
}

TEST_F(SimulatedSessionTest, AValueGoesFromDeviceToDeviceWithoutTheHost) {
  const Output x = Placeholder(DType::kFloat);
  const Output square = On("/device:GPU:0", [&] { return Square(x); });
  const Output negated = On("/device:GPU:1", [&] { return Neg(square); });
  // Of two that want it there it comes once; on the host it is wanted too.
  const Output sum = On("/device:GPU:1", [&] { return Add(negated, square); });
  const Output on_cpu = On("/device:CPU:0", [&] { return Square(square); });
  const auto session = Open();
  for (int round = 0; round < 20; ++round) {
    const int64_t first = SharedSimulatedDriver(0).launches();
    const int64_t second = SharedSimulatedDriver(1).launches();
    const auto values = session->Run({{x, {2.0f, 3.0f}}}, {negated, sum, on_cpu});
    ASSERT_OK(values.status());
    EXPECT_EQ((*values)[0].data<float>()[1], -9);
    EXPECT_EQ((*values)[1].data<float>()[1], 0);
    EXPECT_EQ((*values)[2].data<float>()[1], 81);
    // In, the square, out to the CPU and to the other device; there two kernels and two fetches.
    EXPECT_EQ(SharedSimulatedDriver(0).launches() - first, 4);
    EXPECT_EQ(SharedSimulatedDriver(1).launches() - second, 4);
  }
}

TEST_F(SimulatedSessionTest, ADeadValueGoesFromDeviceToDevice) {
  const Output x = Placeholder(DType::kFloat), chosen = Placeholder(DType::kBool);
  const auto branches = On("/device:GPU:0", [&] {
    const auto parts = Switch(Square(x), chosen);
    return Merge({On("/device:GPU:1", [&] { return Neg(parts.output_true); }),
                  On("/device:GPU:1", [&] { return Square(parts.output_false); })})
        .output;
  });
  const auto session = Open();
  for (const bool value : {true, false, true}) {
    const auto result =
        session->Run<std::vector<float>>({{x, {2.0f, 3.0f}}, {chosen, value}}, branches);
    ASSERT_OK(result.status());
    EXPECT_EQ((*result)[1], value ? -9 : 81);
  }
}

TEST_F(SimulatedSessionTest, AStepThatOnlyUpdatesIsOverWhenItsUpdatesAre) {
  const Output v = VariableV2(Shape{2}, DType::kFloat, {.name = "v"});
  const Output init = Assign(v, Const({1.0f, 2.0f})), update = AssignAdd(v, Const({1.0f, 1.0f}));
  const auto session = Open();
  ASSERT_OK(session->Run({}, {}, {init}).status());
  for (int i = 0; i < 10; ++i) ASSERT_OK(session->Run({}, {}, {update}).status());
  const auto value = session->Run<std::vector<float>>({}, v);
  ASSERT_OK(value.status());
  EXPECT_EQ((*value)[1], 12);
}

}  // namespace
}  // namespace tenon::testing
