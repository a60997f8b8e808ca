// SPDX-License-Identifier: Apache-2.0
//
// That the simulated device finds the mistakes that code for such devices has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <semaphore>

#include "tests/testing/simulated_device.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::HasSubstr;

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
  /// Makes what is queued there late: the kernel in front of it ends with GoOn().
  void Hold(Stream stream) {
    d_.driver.Launch(stream, {}, [this] { go_on_.acquire(); });
  }
  void GoOn() { go_on_.release(); }

  std::binary_semaphore go_on_{0};
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
  Hold(Stream::kToDevice);
  d_.driver.Copy(Stream::kToDevice, value.raw_data(), host.raw_data(), host.num_bytes());
  host.data<float>()[3] = 77;
  GoOn();
  EXPECT_THAT(Found(),
              HasSubstr("the host has changed or freed 400 bytes before they were copied"));
}

TEST_F(PlantedFaultTest, AHostTensorThatIsFreedBeforeItIsCopied) {
  Tensor value = d_.New({100});
  d_.driver.WaitFor(Stream::kToDevice, Stream::kCompute);
  Hold(Stream::kToDevice);
  {
    const Tensor staged = Tensor::Allocate(d_.driver.pinned(), DType::kFloat, Shape{100}).value();
    std::copy_n(Numbers(100).data<float>(), 100, const_cast<float*>(staged.data<float>()));
    d_.driver.Copy(Stream::kToDevice, value.raw_data(), staged.raw_data(), staged.num_bytes());
  }
  // The next one to stage something gets the same memory.
  Tensor next = Tensor::Allocate(d_.driver.pinned(), DType::kFloat, Shape{100}).value();
  std::fill_n(next.data<float>(), 100, 5.0f);
  GoOn();
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
  Hold(Stream::kToHost);
  d_.driver.Copy(Stream::kToHost, host.raw_data(), value.raw_data(), value.num_bytes());
  EXPECT_NE(host.data<float>()[7], 7);
  GoOn();
  Found();
  EXPECT_EQ(host.data<float>()[7], 7);
}

using PlantedFaultDeathTest = PlantedFaultTest;

TEST_F(PlantedFaultDeathTest, AHostThatTouchesTheMemoryOfTheDevice) {
  Tensor value = d_.New({100});
  EXPECT_DEATH(value.data<float>()[3] = 1, "");
  EXPECT_DEATH(std::exit(value.data<float>()[3] == 0 ? 0 : 1), "");
}

}  // namespace
}  // namespace tenon::testing
