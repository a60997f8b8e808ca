// SPDX-License-Identifier: Apache-2.0
//
// Kernels give the same, bit by bit, on however many threads.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/parallel.h"
#include "core/base/sanitizers.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::RunOp;
using testing::Sample;

struct Case {
  std::string op;
  std::vector<Tensor> inputs;
  AttributeMap attrs = {};
};

Tensor Axis(int32_t axis) { return Tensor::Vector<int32_t>({axis}); }
Tensor Floats(const Shape& shape) { return Sample(DType::kFloat, shape, -4, 4, 1); }

/// Each is more work than ParallelFor leaves to one thread.
std::vector<Case> Cases() {
  const Tensor tall = Floats({200003, 33}), wide = Floats({33, 200003}), line = Floats({7000001});
  const Tensor image = Floats({5, 101, 101, 67}), channels = Floats({67});
  const Tensor mask = Sample(DType::kBool, {200003, 33}, 0, 1, 2);
  const Tensor length = Tensor::Vector<int32_t>({300001});
  const AttributeMap seeds = {{"seed", 1}, {"seed2", 2}};
  const AttributeMap floats = {{"seed", 1}, {"seed2", 2}, {"dtype", DType::kFloat}};
  std::vector<Case> cases;
  for (const std::string op : {"Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm"}) {
    for (const Tensor& x : {tall, wide}) {
      cases.push_back({op, {x, Axis(0)}});
      cases.push_back({op, {x, Axis(1)}});
    }
    cases.push_back({op, {line, Axis(0)}});
    cases.push_back({op, {image, Tensor::Vector<int32_t>({1, 2})}});
  }
  for (const std::string op : {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"}) {
    cases.push_back({op, {length}, floats});
  }
  cases.push_back({"RandomUniformInt", {length, Tensor::Scalar(-3), Tensor::Scalar(500)}, seeds});
  cases.push_back({"Multinomial", {Floats({30001, 10}), Tensor::Scalar(3)}, seeds});
  const Tensor places = Sample(DType::kInt32, {300001, 1}, 0, 32, 4);
  cases.push_back({"GatherV2", {Floats({33}), places, Tensor::Scalar(0)}});
  cases.push_back({"GatherNd", {Floats({33, 5}), places}});
  for (const std::string op : {"Softmax", "LogSoftmax", "Exp", "Sigmoid", "Neg", "BiasAddGrad"}) {
    cases.push_back({op, {tall}});
  }
  cases.push_back({"BiasAdd", {image, channels}});
  cases.push_back({"LRN", {image}});
  cases.push_back({"Add", {tall, tall}});
  cases.push_back({"Mul", {tall, Floats({33})}});
  cases.push_back({"SelectV2", {mask, tall, Floats({33})}});
  cases.push_back({"Select", {mask, tall, tall}});
  cases.push_back({"ReverseV2", {tall, Axis(1)}});
  cases.push_back({"OneHot",
                   {Sample(DType::kInt32, {65537}, -1, 20, 3), Tensor::Scalar(20),
                    Tensor::Scalar(2.5f), Tensor::Scalar(-1.0f)}});
  cases.push_back({"FusedBatchNormV3",
                   {image, channels, channels, Tensor::Zeros(DType::kFloat, {0}),
                    Tensor::Zeros(DType::kFloat, {0})}});
  return cases;
}

TEST(ThreadCountsTest, ResultsDoNotDependOnThem) {
  const int before = ThreadBudget();
  // LeakSanitizer takes what libomp keeps of a larger team for lost.
  const std::vector<int> counts = kSanitized ? std::vector{1, 2} : std::vector{1, 2, 3, 5};
  for (const Case& c : Cases()) {
    std::vector<Tensor> wanted;
    for (const int threads : counts) {
      SetThreadBudget(threads);
      const auto found = RunOp(c.op, c.inputs, c.attrs);
      ASSERT_OK(found.status) << c.op;
      if (threads == 1) wanted = found.outputs;
      for (size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_TRUE(found.outputs[i].Equals(wanted[i]))
            << c.op << " of " << StrCat(c.inputs[0].shape()) << " on " << threads
            << " threads, output " << i;
      }
    }
  }
  SetThreadBudget(before);
}

}  // namespace
}  // namespace tenon
