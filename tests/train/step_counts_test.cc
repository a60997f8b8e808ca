// SPDX-License-Identifier: Apache-2.0
// How often steps of training ask for memory by `new`, once they have run a few times: bookkeeping
// of the executor and of kernels, which costs as much as a small kernel. Memory of tensors is not
// among it, nor what oneDNN asks for, which depends on the processor. And how often a step makes
// its caller wait, which costs as much as some hundred nodes.
#include <gtest/gtest.h>
#include <link.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "core/base/sanitizers.h"
#include "core/build/building.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/flow.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/nn/nn_ops.h"
#include "ops/register.h"
#include "runtime/session/local_session.h"
#include "tests/testing/status_matchers.h"
#include "train/layers/convolution.h"
#include "train/layers/dense.h"
#include "train/layers/pooling.h"
#include "train/layers/rnn.h"
#include "train/optimizers/gradient_descent.h"
#include "train/variables.h"

namespace {

std::atomic<int64_t> allocations{0};

struct AddressRange {
  uintptr_t begin = 0, end = 0;
};
AddressRange one_dnn;

/// Finds where oneDNN has been loaded. For dl_iterate_phdr.
int FindOneDnn(dl_phdr_info* library, size_t, void*) {
  if (std::strstr(library->dlpi_name, "libdnnl") == nullptr) return 0;
  one_dnn.begin = library->dlpi_addr;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const auto& part = library->dlpi_phdr[i];
    one_dnn.end = std::max<uintptr_t>(one_dnn.end, one_dnn.begin + part.p_vaddr + part.p_memsz);
  }
  return 1;
}

}  // namespace

#if !TENON_ADDRESS_SANITIZER && !TENON_THREAD_SANITIZER
namespace {
void* CountedNew(std::size_t bytes, std::size_t alignment, const void* caller) {
  const auto from = reinterpret_cast<uintptr_t>(caller);
  if (from < one_dnn.begin || from >= one_dnn.end) {
    allocations.fetch_add(1, std::memory_order_relaxed);
  }
  if (bytes > PTRDIFF_MAX) throw std::bad_alloc();
  const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment;
  void* const memory = std::aligned_alloc(alignment, rounded * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

// The standard library's other forms of new and delete call these.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  return CountedNew(bytes, alignof(std::max_align_t), __builtin_return_address(0));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return CountedNew(bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
#endif

namespace tenon::testing {
namespace {

struct TrainedModel {
  Output x;
  Tensor batch;
  Output loss;
};

TrainedModel Mlp() {
  const Output x = Placeholder(DType::kFloat, {-1, 20});
  const Output y = Dense(5)(Dense(10, {.activation = Sigmoid})(x));
  return {x, Tensor::Zeros(DType::kFloat, {8, 20}), Mean(Square(y))};
}

TrainedModel Convolutional() {
  const Output x = Placeholder(DType::kFloat, {-1, 8, 8, 1});
  const Output h = MaxPooling2D(Convolution2D(4, 3, {.padding = "SAME", .activation = Relu})(x), 2);
  return {x, Tensor::Zeros(DType::kFloat, {4, 8, 8, 1}), Mean(Square(Dense(3)(Flatten(h))))};
}

TrainedModel Lstm() {
  const Output x = Placeholder(DType::kFloat, {4, 10, 3});
  const auto [outputs, state] = DynamicRnn(LstmCell(6), x);
  return {x, Tensor::Zeros(DType::kFloat, {4, 10, 3}), Mean(Square(outputs))};
}

/// The allocations of a step whose loop goes round so often, with a branch each time.
int64_t AllocationsOfLoop(int64_t iterations) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Output scale = Fill({2, 2}, 0.5f);
  const Output end = WhileLoop(
      {0, Fill({2, 2}, 1.0f)},
      [&](const std::vector<Output>& v) { return Less(v[0], static_cast<int32_t>(iterations)); },
      [&](const std::vector<Output>& v) {
        const Output sum = Sum(v[1], 0);
        return std::vector<Output>{v[0] + 1,
                                   Cond(
                                       Sum(sum) > 3.0f, [&] { return Tanh(MatMul(v[1], scale)); },
                                       [&] { return v[1] * 2.0f + sum; })};
      })[1];
  EXPECT_OK(graph.error());
  auto session = MakeLocalSession(graph, {.threads = 1});
  EXPECT_OK(session.status());
  auto step = (*session)->Prepare({}, {end}, {});
  EXPECT_OK(step.status());
  std::vector<Tensor> fetched;
  int64_t least = INT64_MAX;
  for (int i = 0; i < 40; ++i) {
    const int64_t before = allocations.load(std::memory_order_relaxed);
    EXPECT_OK((*step)->Run({}, &fetched));
    least = std::min(least, allocations.load(std::memory_order_relaxed) - before);
  }
  return least;
}

/// Trains a model, a step a call.
class Training {
 public:
  Training(TrainedModel (*build)(), int threads) {
    Graph graph(AllOps());
    const GraphBuilding building(graph);
    SetRandomSeed(1);
    const TrainedModel m = build();
    batch_ = m.batch;
    Node* const train = GradientDescent(0.1).Minimize(m.loss);
    Node* const init = GlobalVariablesInitializer();
    EXPECT_OK(graph.error());
    LocalSessionOptions options;
    options.threads = threads;
    options.devices.gpus = 0;
    auto session = MakeLocalSession(graph, options);
    EXPECT_OK(session.status());
    EXPECT_OK((*session)->Run({}, {}, {init}).status());
    auto step = (*session)->Prepare({m.x}, {m.loss}, {train});
    EXPECT_OK(step.status());
    session_ = *std::move(session);
    step_ = *std::move(step);
  }
  void Step() { EXPECT_OK(step_->Run({batch_}, &fetched_)); }

 private:
  Tensor batch_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<PreparedStep> step_;
  std::vector<Tensor> fetched_;
};

/// The allocations of a step that trains the model, the least of some steps.
int64_t AllocationsOfStep(TrainedModel (*build)()) {
  Training training(build, 1);
  int64_t least = INT64_MAX;
  for (int i = 0; i < 40; ++i) {
    const int64_t before = allocations.load(std::memory_order_relaxed);
    training.Step();
    least = std::min(least, allocations.load(std::memory_order_relaxed) - before);
  }
  return least;
}

/// How often this thread has waited for something.
int64_t Waits() {
  rusage use;
  EXPECT_EQ(getrusage(RUSAGE_THREAD, &use), 0);
  return use.ru_nvcsw;
}

/// How often the caller waits in twenty steps that train the model, the least of some times.
int64_t WaitsOfTwentySteps(TrainedModel (*build)(), int threads) {
  Training training(build, threads);
  int64_t least = INT64_MAX;
  for (int i = 0; i < 10; ++i) {
    const int64_t before = Waits();
    for (int k = 0; k < 20; ++k) training.Step();
    least = std::min(least, Waits() - before);
  }
  return least;
}

class StepCountsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "a sanitizer has its own operator new";
    if (one_dnn.end == 0) dl_iterate_phdr(FindOneDnn, nullptr);
    if (one_dnn.end == 0) GTEST_SKIP() << "oneDNN is no shared library, whose calls could be told";
  }
};

// Each limit is a tenth above the count of today, for compilers that count otherwise: 5, 92 and
// 43. The layouts between which oneDNN's convolutions translate depend on the processor.
TEST_F(StepCountsTest, AllocationsOfAPerceptron) { EXPECT_LE(AllocationsOfStep(Mlp), 6); }
TEST_F(StepCountsTest, AllocationsOfARecurrentNetwork) { EXPECT_LE(AllocationsOfStep(Lstm), 101); }
TEST_F(StepCountsTest, AllocationsOfAConvolutionalNetwork) {
  EXPECT_LE(AllocationsOfStep(Convolutional), 56);
}

TEST_F(StepCountsTest, IterationsAskForNoMemoryButForTensors) {
  EXPECT_EQ(AllocationsOfLoop(200), AllocationsOfLoop(40));
}

// Kernels that are too small to be worth another thread run on the caller's, of how many threads
// ever: it never waits.
TEST_F(StepCountsTest, NoStepOfSmallKernelsWaits) {
  for (const int threads : {1, 4}) {
    EXPECT_EQ(WaitsOfTwentySteps(Mlp, threads), 0) << threads << " threads";
    EXPECT_EQ(WaitsOfTwentySteps(Lstm, threads), 0) << threads << " threads";
    EXPECT_EQ(WaitsOfTwentySteps(Convolutional, threads), 0) << threads << " threads";
  }
}

}  // namespace
}  // namespace tenon::testing
