// SPDX-License-Identifier: Apache-2.0
//
// The driver over CUDA's runtime, on a fake of that (fake_runtime.h): what it queues, what it waits
// for, whom it calls when.
#include "runtime/cuda/cuda_driver.h"
#include "ops/cuda/device_kind.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <numeric>
#include <thread>

#include "core/base/exceptions.h"
#include "core/tensor/tensor.h"
#include "runtime/accelerator/stream_device.h"
#include "tests/runtime/cuda/fake_runtime.h"
#include "tests/testing/status_matchers.h"

namespace tenon::cuda {
namespace {

using fake::Gate;
using ::testing::HasSubstr;
using testing::IsError;

/// What was called, in order.
class Calls {
 public:
  std::function<void(const Status&)> Next(int id) {
    return [this, id](const Status& status) {
      const std::lock_guard lock(mu_);
      ids_.push_back(id);
      last_ = status;
      changed_.notify_all();
    };
  }
  std::vector<int> WaitFor(size_t count) {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return ids_.size() >= count; });
    return ids_;
  }
  size_t size() {
    const std::lock_guard lock(mu_);
    return ids_.size();
  }
  Status last() {
    const std::lock_guard lock(mu_);
    return last_;
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  std::vector<int> ids_;
  Status last_;
};

std::vector<char> Bytes(size_t count) {
  std::vector<char> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
  return bytes;
}

class CudaDriverTest : public ::testing::Test {
 protected:
  ~CudaDriverTest() override {
    fake::FailWith(cudaSuccess);
    fake::FailPinnedMemory(false);
  }

  void Start(const GpuOptions& options = {}) {
    auto driver = CudaDriver::Make(0, "0 (Fake GPU)", options);
    ASSERT_OK(driver.status());
    driver_ = *std::move(driver);
  }
  cudaStream_t StreamOf(Stream stream) {
    return static_cast<cudaStream_t>(driver_->Native(stream));
  }
  Status Wait(Stream stream) {
    Calls calls;
    driver_->CallWhenDone(stream, calls.Next(0));
    calls.WaitFor(1);
    return calls.last();
  }

  std::unique_ptr<CudaDriver> driver_;
};

TEST_F(CudaDriverTest, CopiesOfAnySizeArriveWithoutTheCallerWaiting) {
  Start();
  for (const size_t size : {1, 1000, 65536, 65537, 20 << 20}) {
    const std::vector<char> sent = Bytes(size);
    std::vector<char> received(size);
    Gate in(StreamOf(Stream::kToDevice));
    void* const memory = driver_->Allocate(Stream::kToDevice, size);
    ASSERT_NE(memory, nullptr);
    driver_->Copy(Stream::kToDevice, memory, sent.data(), size);
    driver_->WaitFor(Stream::kToHost, Stream::kToDevice);
    driver_->Copy(Stream::kToHost, received.data(), memory, size);
    Calls calls;
    driver_->CallWhenDone(Stream::kToHost, calls.Next(1));
    EXPECT_EQ(calls.size(), 0u);
    in.Open();
    calls.WaitFor(1);
    EXPECT_EQ(received, sent) << size;
    driver_->Free(memory, size);
  }
  EXPECT_EQ(fake::PageableCopies(), 0);
}

TEST_F(CudaDriverTest, SmallValuesAreReadBeforeCopyReturns) {
  Start();
  Gate gate(StreamOf(Stream::kToDevice));
  std::vector<void*> memory;
  const int kValues = 20;
  for (int i = 0; i < kValues; ++i) {
    memory.push_back(driver_->Allocate(Stream::kToDevice, sizeof(int)));
    int value = i;
    driver_->Copy(Stream::kToDevice, memory.back(), &value, sizeof(int));
    value = -1;
  }
  gate.Open();
  ASSERT_OK(Wait(Stream::kToDevice));
  for (int i = 0; i < kValues; ++i) {
    EXPECT_EQ(*static_cast<int*>(memory[i]), i);  // the fake's memory is the host's
    driver_->Free(memory[i], sizeof(int));
  }
}

TEST_F(CudaDriverTest, MoreValuesThanAreKeptAsideWaitTheirTurn) {
  Start();
  Gate gate(StreamOf(Stream::kToDevice));
  std::vector<int> values(200);
  std::iota(values.begin(), values.end(), 0);
  void* const memory = driver_->Allocate(Stream::kToDevice, values.size() * sizeof(int));
  for (size_t i = 0; i < values.size(); ++i) {
    driver_->Copy(Stream::kToDevice, static_cast<int*>(memory) + i, &values[i], sizeof(int));
  }
  gate.Open();
  ASSERT_OK(Wait(Stream::kToDevice));
  EXPECT_EQ(std::memcmp(memory, values.data(), values.size() * sizeof(int)), 0);
  driver_->Free(memory, values.size() * sizeof(int));
}

TEST_F(CudaDriverTest, CallsComeInOrderAndAtOnceWhenNothingIsQueued) {
  Start();
  Calls calls;
  driver_->CallWhenDone(Stream::kCompute, calls.Next(0));
  EXPECT_EQ(calls.size(), 1u);
  Gate gate(StreamOf(Stream::kCompute));
  for (int i = 1; i <= 100; ++i) driver_->CallWhenDone(Stream::kCompute, calls.Next(i));
  driver_->CallWhenDone(Stream::kToHost, calls.Next(-1));
  EXPECT_EQ(calls.size(), 2u);
  gate.Open();
  std::vector<int> wanted(102);
  std::iota(wanted.begin() + 1, wanted.end(), 0);
  wanted[0] = 0;
  wanted[1] = -1;
  std::iota(wanted.begin() + 2, wanted.end(), 1);
  EXPECT_EQ(calls.WaitFor(102), wanted);
}

TEST_F(CudaDriverTest, AStreamWaitsForAnother) {
  Start();
  Calls calls;
  Gate gate(StreamOf(Stream::kToDevice));
  driver_->WaitFor(Stream::kCompute, Stream::kToDevice);
  driver_->CallWhenDone(Stream::kCompute, calls.Next(1));
  EXPECT_EQ(calls.size(), 0u);
  gate.Open();
  calls.WaitFor(1);
}

TEST_F(CudaDriverTest, ACopyToAnotherGpuWaitsForWhatIsQueuedOnBoth) {
  Start();
  auto other = CudaDriver::Make(1, "1 (Fake GPU)", {});
  ASSERT_OK(other.status());
  StreamDevice here("/device:GPU:0", kCuda, *driver_, 1 << 20, std::make_shared<ResourceStore>());
  StreamDevice there("/device:GPU:1", kCuda, **other, 1 << 20, std::make_shared<ResourceStore>());
  const auto before = fake::CountPeerCopies();
  {
    Tensor host(DType::kFloat, {1000});
    std::fill_n(host.data<float>(), 1000, 3.0f);
    const Tensor value = here.CopyToDevice(host).value();
    Gate kernels(StreamOf(Stream::kCompute));
    Gate memory(static_cast<cudaStream_t>((*other)->Native(Stream::kToDevice)));
    Calls calls;
    Tensor copy;
    here.CopyToPeer(value, there, 1, [&, next = calls.Next(1)](StatusOr<Tensor> arrived) {
      ASSERT_OK(arrived.status());
      copy = *std::move(arrived);
      next(OkStatus());
    });
    for (Gate* gate : {&kernels, &memory}) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      EXPECT_EQ(calls.size(), 0u);
      gate->Open();
    }
    calls.WaitFor(1);
    EXPECT_EQ(&copy.allocator(), &(*other)->memory());
    EXPECT_EQ(copy.data<float>()[999], 3.0f);  // the fake's memory is the host's
  }
  const auto after = fake::CountPeerCopies();
  EXPECT_EQ(after.right - before.right, 1);
  EXPECT_EQ(after.wrong, before.wrong);
}

TEST_F(CudaDriverTest, ManyThreadsQueueAndAreCalled) {
  Start();
  constexpr int kThreads = 4, kRounds = 300;
  Calls calls;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::vector<char> sent = Bytes(2000);
      for (int i = 0; i < kRounds; ++i) {
        void* const memory = driver_->Allocate(Stream::kToDevice, sent.size());
        driver_->Copy(Stream::kToDevice, memory, sent.data(), sent.size());
        driver_->WaitFor(Stream::kCompute, Stream::kToDevice);
        driver_->CallWhenDone(Stream::kCompute, [&, memory](const Status& status) {
          EXPECT_EQ(std::memcmp(memory, sent.data(), sent.size()), 0);
          driver_->Free(memory, sent.size());
          calls.Next(0)(status);
        });
        if (i % 7 == t) ASSERT_OK(Wait(Stream::kCompute));
      }
      ASSERT_OK(Wait(Stream::kCompute));
    });
  }
  for (std::thread& thread : threads) thread.join();
  calls.WaitFor(kThreads * kRounds);
  EXPECT_OK(calls.last());
}

TEST_F(CudaDriverTest, ACallFindsNoErrorThatWaitingHasLeft) {
  Start();
  cudaError_t left = cudaErrorUnknown;
  Calls calls;
  {
    Gate gate(StreamOf(Stream::kCompute));
    driver_->CallWhenDone(Stream::kCompute, [&, next = calls.Next(1)](const Status& status) {
      left = cudaGetLastError();  // which a kernel that is queued here would take for its own
      next(status);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // so that it is asked for
  }
  calls.WaitFor(1);
  EXPECT_EQ(left, cudaSuccess);
}

TEST_F(CudaDriverTest, MemoryIsLimitedToTheShareAndSaysWhoHasIt) {
  Start({.memory_fraction = 0.25});
  EXPECT_EQ(driver_->memory_limit(), fake::kTotalMemory / 4);
  const size_t half = fake::kTotalMemory / 8;
  void* const first = driver_->Allocate(Stream::kCompute, half);
  void* const second = driver_->Allocate(Stream::kToDevice, half);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  const auto tensor = Tensor::Allocate(driver_->memory(), DType::kFloat, Shape({1000}));
  EXPECT_THAT(tensor.status(),
              IsError(StatusCode::kResourceExhausted,
                      "out of device memory for a tensor float[1000]: of the 1.0 GiB of the GPU 0 "
                      "(Fake GPU), this process's tensors hold 256 MiB and may hold 256 MiB"));
  driver_->Free(first, half);
  EXPECT_OK(Tensor::Allocate(driver_->memory(), DType::kFloat, Shape({1000})).status());
  driver_->Free(second, half);
}

TEST_F(CudaDriverTest, MemoryThatIsNotThereIsNoFailure) {
  Start();
  EXPECT_EQ(driver_->Allocate(Stream::kCompute, size_t{1} << 40), nullptr);
  void* const all = driver_->Allocate(Stream::kCompute, fake::kTotalMemory - 4096);
  ASSERT_NE(all, nullptr);
  // The driver knows only after asking.
  GpuOptions options;
  auto other = CudaDriver::Make(0, "another", options);
  ASSERT_OK(other.status());
  EXPECT_EQ((*other)->Allocate(Stream::kCompute, 8192), nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);  // which the next kernel would take for its own
  EXPECT_OK(Wait(Stream::kCompute));
  driver_->Free(all, fake::kTotalMemory - 4096);
  ASSERT_OK(Wait(Stream::kCompute));
}

TEST_F(CudaDriverTest, AllMemoryIsTakenAtOnceWhenAskedTo) {
  Start({.memory_fraction = 0.5, .allow_growth = false});
  ASSERT_OK(Wait(Stream::kCompute));
  void* const most = driver_->Allocate(Stream::kCompute, fake::kTotalMemory * 3 / 4);
  EXPECT_EQ(most, nullptr);
  auto taken = CudaDriver::Make(0, "big", GpuOptions());
  ASSERT_OK(taken.status());
  const size_t nearly = fake::kTotalMemory - (size_t{100} << 20);
  void* const memory = (*taken)->Allocate(Stream::kCompute, nearly);
  ASSERT_NE(memory, nullptr);
  EXPECT_THAT(CudaDriver::Make(0, "0 (Fake GPU)", {.allow_growth = false}).status(),
              IsError(StatusCode::kResourceExhausted, "cannot take 0 MiB of the GPU 0 (Fake GPU)"));
  (*taken)->Free(memory, nearly);
}

TEST_F(CudaDriverTest, ACheckWithoutMemoryIsAnErrorOfItsStep) {
  Start();
  StreamDevice device("/device:GPU:0", kCuda, *driver_, driver_->memory_limit(),
                      std::make_shared<ResourceStore>());
  const auto describe = [](uint64_t word) { return InvalidArgument("found ", word); };
  fake::FailPinnedMemory(true);
  const RunCheck without_memory = device.AddCheck(1, describe);
  fake::FailPinnedMemory(false);
  ASSERT_NE(without_memory.word, nullptr);
  EXPECT_NE(*device.FailureOf(1)->word, 0);
  const RunCheck with_memory = device.AddCheck(2, describe);
  ASSERT_NE(with_memory.word, without_memory.word);
  EXPECT_EQ(*device.FailureOf(2)->word, 0);
  // A step of which only a later check is without fails too, and its updates know.
  device.AddCheck(3, describe);
  EXPECT_EQ(*device.FailureOf(3)->word, 0);
  fake::FailPinnedMemory(true);
  device.AddCheck(3, describe);
  fake::FailPinnedMemory(false);
  EXPECT_NE(*device.FailureOf(3)->word, 0);
  const auto end = [&](int64_t step) {
    Status result = Internal("not called");
    device.EndStep(step, [&](Status s) { result = std::move(s); });
    EXPECT_OK(device.Wait());
    return result;
  };
  EXPECT_EQ(end(1), ResourceExhausted("out of pinned memory for checks"));
  EXPECT_OK(end(2));
  EXPECT_EQ(end(3), ResourceExhausted("out of pinned memory for checks"));
}

TEST_F(CudaDriverTest, ARecordingIsDoneEachTimeItIsQueued) {
  Start();
  constexpr size_t kBytes = 1000;
  void* const pinned = driver_->AllocatePinned(kBytes);
  void* const memory = driver_->Allocate(Stream::kCompute, 2 * kBytes);
  char* const copy = static_cast<char*>(memory) + kBytes;
  auto capture = driver_->Capture();
  ASSERT_OK(capture.status());
  EXPECT_NE((*capture)->Native(), driver_->Native(Stream::kCompute));
  (*capture)->Copy(memory, pinned, kBytes);
  (*capture)->Copy(copy, memory, kBytes);
  // What others queue meanwhile is done.
  ASSERT_OK(Wait(Stream::kCompute));
  ASSERT_OK((*capture)->Finish());
  for (int round = 0; round < 3; ++round) {
    std::memset(pinned, round, kBytes);
    (*capture)->Queue();
    ASSERT_OK(Wait(Stream::kCompute));
    EXPECT_EQ(copy[kBytes - 1], round);
  }
  capture->reset();
  driver_->Free(memory, 2 * kBytes);
  driver_->FreePinned(pinned, kBytes);
  ASSERT_OK(Wait(Stream::kCompute));
}

TEST_F(CudaDriverTest, WhatCannotBeRecordedIsNoFailure) {
  Start();
  auto capture = driver_->Capture();
  ASSERT_OK(capture.status());
  fake::FailNextCapture(cudaErrorStreamCaptureUnsupported);
  EXPECT_THAT((*capture)->Finish(),
              IsError(absl::StatusCode::kUnavailable, "cannot capture a step"));
  (void)driver_->Capture();  // and given up
  ASSERT_OK(Wait(Stream::kCompute));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(CudaDriverTest, AFailureIsForGoodAndEverybodyHearsOfIt) {
  Start();
  Calls calls;
  Gate gate(StreamOf(Stream::kCompute));
  driver_->CallWhenDone(Stream::kCompute, calls.Next(1));
  driver_->CallWhenDone(Stream::kCompute, calls.Next(2));
  fake::FailWith(cudaErrorIllegalAddress);
  EXPECT_EQ(calls.WaitFor(2), (std::vector<int>{1, 2}));
  gate.Open();
  fake::FailWith(cudaSuccess);
  const auto is_failure = IsError(StatusCode::kInternal,
                                  "the GPU 0 (Fake GPU) failed: an illegal memory access was "
                                  "encountered (cudaErrorIllegalAddress), as was found when ");
  EXPECT_THAT(calls.last(), is_failure);
  EXPECT_THAT(Wait(Stream::kToHost), is_failure);
  EXPECT_EQ(driver_->Allocate(Stream::kCompute, 16), nullptr);
  EXPECT_THAT(driver_->DescribeMemory(), HasSubstr("the GPU 0 (Fake GPU) failed"));
}

TEST_F(CudaDriverTest, AGpuThatCannotBeUsedSaysWhy) {
  EXPECT_THAT(CudaDriver::Make(7, "7", {}).status(),
              IsError(StatusCode::kUnavailable, "the GPU 7 cannot be used: making its context"));
}

}  // namespace
}  // namespace tenon::cuda
