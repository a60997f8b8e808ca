// SPDX-License-Identifier: Apache-2.0
//
// A device with memory of its own, run by a SimulatedDriver: what it copies, checks and records.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "ops/cuda/device_kind.h"
#include "tests/testing/simulated_device.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::HasSubstr;

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
  StreamDevice small("/device:GPU:1", kCuda, driver, 1 << 20, std::make_shared<ResourceStore>());
  const Tensor value = a.device.CopyToDevice(Numbers(1 << 19)).value();
  const auto arrived = SimulatedDevice::Await(
      [&](SimulatedDevice::Done done) { a.device.CopyToPeer(value, small, 1, std::move(done)); });
  EXPECT_THAT(arrived.status(), IsError(StatusCode::kResourceExhausted, "on /device:GPU:1"));
}

TEST(StreamDeviceTest, AFailedKernelIsTheErrorOfItsStepOnly) {
  SimulatedDevice d;
  const Tensor value = d.device.CopyToDevice(Numbers(4)).value();
  const RunCheck check = d.device.AddCheck(
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
  const RunCheck first = d.device.AddCheck(1, describe), second = d.device.AddCheck(1, describe),
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
  StreamDevice device(kSimulatedName, kCuda, driver, 1 << 20, std::make_shared<ResourceStore>());
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
  auto capture = d.device.Capture(1).value();
  Tensor result;
  {
    Device& device = capture->device();
    Tensor ones = device.queue()->CopyToDevice(Numbers(100)).value(), between;
    d.AddOne(ones, &ones);  // in place: each repetition copies it anew
    between = Tensor::Allocate(device.allocator(), DType::kFloat, {100}).value();
    d.AddOne(ones, &between);
    result = Tensor::Allocate(device.allocator(), DType::kFloat, {100}).value();
    d.AddOne(between, &result);
    d.AddOne(value, &value);
  }
  ASSERT_OK(capture->Finish());
  EXPECT_EQ(d.ToHost(value)->data<float>()[7], 7);
  for (int i = 1; i < 4; ++i) {
    ASSERT_TRUE(capture->Queue(i, nullptr));
    EXPECT_FALSE(capture->Queue(i, nullptr)) << "its step is not over";
    EXPECT_EQ(d.ToHost(result)->data<float>()[7], 10);
    EXPECT_EQ(d.ToHost(value)->data<float>()[7], 7 + i);
    d.device.EndStep(i, [](const Status&) {});
    ASSERT_OK(d.device.Wait());
  }
  capture = nullptr;  // before what is in its memory
  EXPECT_EQ(d.ToHost(result.Copy().value())->data<float>()[7], 10);
}

TEST(StreamRecordingTest, ItsChecksAreThoseOfEachStep) {
  SimulatedDevice d;
  auto capture = d.device.Capture(1).value();
  EXPECT_EQ(capture->device().queue()->FailureOf(1), nullptr);
  const RunCheck check = capture->device().queue()->AddCheck(
      1, [](uint64_t word) { return InvalidArgument("found ", word); });
  bool fails = false;
  d.driver.Launch(Stream::kCompute, {}, [&] {
    if (fails) *check.word = *check.failure->word = 3;
  });
  ASSERT_OK(capture->Finish());
  for (int i = 1; i < 6; ++i) {
    fails = i % 2 == 0;
    ASSERT_TRUE(capture->Queue(i, nullptr));
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
  const RunCheck before = d.device.AddCheck(1, [](uint64_t) { return OkStatus(); });
  auto capture = d.device.Capture(1).value();
  const RunFailure* const failure = capture->device().queue()->FailureOf(1);
  ASSERT_NE(failure, nullptr);
  std::vector<uint64_t> seen;
  d.driver.Launch(Stream::kCompute, {}, [&] { seen.push_back(*failure->word); });
  ASSERT_OK(capture->Finish());
  *before.failure->word = 1;
  ASSERT_TRUE(capture->Queue(1, nullptr));
  d.device.EndStep(1, [](const Status&) {});
  ASSERT_OK(d.device.Wait());
  ASSERT_TRUE(capture->Queue(2, nullptr));
  d.device.EndStep(2, [](const Status&) {});
  ASSERT_OK(d.device.Wait());
  EXPECT_THAT(seen, ::testing::ElementsAre(1, 0));
}

TEST(StreamRecordingTest, WhatWouldWaitOrNeedsOtherMemoryCannotBeRecorded) {
  SimulatedDevice d;
  auto waits = d.device.Capture(1).value();
  EXPECT_FALSE(waits->device().queue()->Wait().ok());
  EXPECT_EQ(waits->Finish().code(), absl::StatusCode::kFailedPrecondition);
  auto other = d.device.Capture(1).value();
  EXPECT_FALSE(Tensor::Allocate(d.device.allocator(), DType::kFloat, {4}).ok());
  EXPECT_EQ(other->Finish().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_OK(Tensor::Allocate(d.device.allocator(), DType::kFloat, {4}).status());
  // One that is given up half-way.
  (void)d.device.Capture(1).value();
  EXPECT_OK(Tensor::Allocate(d.device.allocator(), DType::kFloat, {4}).status());
}

TEST(StreamRecordingTest, ItsMemoryIsGivenBackBeforeThereIsNone) {
  auto& driver = *new SimulatedDriver(3, 1 << 20);
  StreamDevice device(kSimulatedName, kCuda, driver, 1 << 20, std::make_shared<ResourceStore>());
  const auto large = [](Allocator& memory) {
    return Tensor::Allocate(memory, DType::kFloat, {150'000});
  };
  auto capture = device.Capture(1).value();
  ASSERT_OK(large(capture->device().allocator()).status());
  ASSERT_OK(capture->Finish());
  ASSERT_TRUE(capture->Queue(1, nullptr));
  EXPECT_FALSE(large(device.allocator()).ok()) << "it is in use";
  device.EndStep(1, [](const Status&) {});
  ASSERT_OK(device.Wait());
  StatusOr<Tensor> tensor = large(device.allocator());
  for (int i = 0; i < 100 && !tensor.ok(); ++i) {  // behind what is queued
    ASSERT_OK(device.Wait());
    tensor = large(device.allocator());
  }
  EXPECT_OK(tensor.status());
  EXPECT_FALSE(capture->Queue(2, nullptr));
}

TEST(StreamRecordingTest, OthersGetTheMemoryThatIsFreedMeanwhile) {
  auto& driver = *new SimulatedDriver(3, 1 << 20);
  StreamDevice device(kSimulatedName, kCuda, driver, 1 << 20, std::make_shared<ResourceStore>());
  StatusOr<Tensor> large = Tensor::Allocate(device.allocator(), DType::kFloat, {150'000});
  ASSERT_OK(large.status());
  auto capture = device.Capture(1).value();
  std::thread([&] {
    *large = Tensor();
    for (int i = 0; i < 100 && !large->valid(); ++i) {  // behind what is queued
      auto another = Tensor::Allocate(device.allocator(), DType::kFloat, {150'000});
      if (another.ok()) *large = *std::move(another);
      EXPECT_OK(device.Wait());
    }
  }).join();
  EXPECT_TRUE(large->valid());
  EXPECT_FALSE(capture->Finish().ok());
}

}  // namespace
}  // namespace tenon::testing
