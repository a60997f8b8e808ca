// SPDX-License-Identifier: Apache-2.0
//
// Groups of kernels of a device, recorded and repeated: a step gives what it gives on a CPU,
// however often it runs, and whatever changes in between.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/nn/nn_ops.h"
#include "ops/random/random_ops.h"
#include "ops/state/state_ops.h"
#include "ops/training/training_ops.h"
#include "tests/testing/device_and_cpu_test.h"

namespace tenon::testing {
namespace {

using ::testing::HasSubstr;

Tensor Ramp(const Shape& shape, float scale) {
  Tensor t(DType::kFloat, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.data<float>()[i] = scale * static_cast<float>(i % 17 - 8);
  }
  return t;
}

/// A network of two layers that trains by gradient descent, on the simulated device and on a CPU.
class CapturesTest : public DeviceAndCpuTest {
 protected:
  void SetUp() override {
    const GraphBuilding building(graph_);
    SetRandomSeed(7);
    features_ = Placeholder(DType::kFloat, PartialShape{-1, 6});
    labels_ = Placeholder(DType::kInt32, PartialShape{-1});
    rate_ = Placeholder(DType::kFloat);
    const Variable w1("w1", Const(Ramp({6, 5}, 0.05f))), b1("b1", Const(Ramp({5}, 0.01f)));
    const Variable w2("w2", Const(Ramp({5, 4}, 0.1f)));
    hidden_ = Relu(BiasAdd(MatMul(features_, w1), b1));
    const Output logits = MatMul(hidden_, w2);
    loss_ = Mean(SparseSoftmaxCrossEntropyWithLogits(logits, labels_).loss,
                 Const(Tensor::Vector<int32_t>({0})));
    const std::vector<Output> gradients = Gradients({loss_}, {w1, b1, w2});
    const Variable* const variables[] = {&w1, &b1, &w2};
    for (size_t i = 0; i < gradients.size(); ++i) {
      updates_.push_back(ApplyGradientDescent(variables[i]->ref(), rate_, gradients[i]));
    }
    w2_ = w2;
    w2_ref_ = w2.ref();
  }

  void Start() {
    DeviceAndCpuTest::Start();
    before_ = SharedSimulatedDriver().repeats();
  }

  StepFeeds::Pairs Feeds(int64_t batch, int round, float rate = 0.1f) const {
    Tensor labels(DType::kInt32, {batch});
    for (int64_t i = 0; i < batch; ++i) {
      labels.data<int32_t>()[i] = static_cast<int32_t>((i + round) % 4);
    }
    return {{features_.name(), Ramp({batch, 6}, 0.1f * static_cast<float>(round % 5 + 1))},
            {labels_.name(), labels},
            {rate_.name(), Tensor::Scalar(rate)}};
  }
  void TrainBoth(int64_t batch, int round) { RunBoth(Feeds(batch, round), {loss_}, updates_); }

  int64_t Repeats() const { return SharedSimulatedDriver().repeats() - before_; }

  Output features_, labels_, rate_, hidden_, loss_, w2_, w2_ref_;
  std::vector<Output> updates_;
  int64_t before_ = 0;
};

TEST_F(CapturesTest, AStepIsRecordedWhenItComesAgain) {
  Start();
  TrainBoth(8, 0);
  EXPECT_EQ(Repeats(), 0);
  for (int round = 1; round < 20; ++round) TrainBoth(8, round);
  EXPECT_GE(Repeats(), 17);
  RunBoth({}, {w2_});
}

TEST_F(CapturesTest, EachBatchSizeHasItsRecording) {
  Start();
  for (int round = 0; round < 12; ++round) TrainBoth(round % 3 == 2 ? 5 : 8, round);
  EXPECT_GE(Repeats(), 7);
  // More of them than are kept.
  for (int round = 0; round < 40; ++round) TrainBoth(1 + round % 10, round);
  RunBoth({}, {w2_});
}

TEST_F(CapturesTest, AVariableThatIsElsewhereIsFound) {
  Output value, assign;
  {
    const GraphBuilding building(graph_);
    value = Placeholder(DType::kFloat, PartialShape{5, 4});
    assign = Assign(w2_ref_, value);
  }
  Start();
  for (int round = 0; round < 12; ++round) {
    TrainBoth(8, round);
    if (round % 4 == 3)
      RunBoth({{value, Ramp({5, 4}, 0.02f * static_cast<float>(round))}}, {}, {assign});
  }
  RunBoth({}, {w2_});
  EXPECT_GT(Repeats(), 4);
}

TEST_F(CapturesTest, AssignedValuesAreRepeatedToo) {
  Output assign, first;
  {
    const GraphBuilding building(graph_);
    const Variable sum("sum", Const(Ramp({4, 6}, 0.5f)));
    first = sum;
    const Output next = Tanh(Add(Mul(sum, 0.5f), Square(features_)));
    assign = Assign(sum.ref(), Add(next, Exp(next)));
  }
  Start();
  for (int round = 0; round < 12; ++round) {
    RunBoth({{features_, Ramp({4, 6}, 0.1f * static_cast<float>(round % 3))}}, {}, {assign});
    if (round % 3 == 0) RunBoth({}, {first});
  }
  RunBoth({}, {first});
  EXPECT_GE(Repeats(), 8);
}

TEST_F(CapturesTest, WhatAStepFetchesIsItsOwn) {
  Start();
  std::vector<std::vector<Tensor>> found, wanted;
  for (int round = 0; round < 8; ++round) {
    for (auto [session, results] : {std::pair{device_.get(), &found}, {cpu_.get(), &wanted}}) {
      auto values = session->Run(Feeds(8, round), {loss_, hidden_, w2_}, {});
      ASSERT_OK(values.status());
      results->push_back(*std::move(values));
      ASSERT_OK(session->Run(Feeds(8, round), {}, updates_).status());
    }
  }
  EXPECT_GT(Repeats(), 10);
  for (size_t round = 0; round < found.size(); ++round) {
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(found[round][i].Equals(wanted[round][i])) << round;
  }
}

TEST_F(CapturesTest, AVariableIsFetchedBesideItsUpdate) {
  Start();
  for (int round = 0; round < 6; ++round) {
    ASSERT_OK(device_->Run(Feeds(8, round), {loss_, w2_}, updates_).status());
    ASSERT_OK(cpu_->Run(Feeds(8, round), {loss_, w2_}, updates_).status());
    RunBoth({}, {w2_});
  }
}

TEST_F(CapturesTest, AFailedStepChangesNothingAndTheNextGoesOn) {
  Start();
  for (int round = 0; round < 4; ++round) TrainBoth(8, round);
  const int64_t before = Repeats();
  StepFeeds::Pairs wrong = Feeds(8, 4);
  wrong[1].second.data<int32_t>()[3] = 99;
  for (int i = 0; i < 2; ++i) {
    const Status found = device_->Run(wrong, {loss_}, updates_).status();
    EXPECT_THAT(Message(found), HasSubstr("label"));
    EXPECT_EQ(found.code(), cpu_->Run(wrong, {loss_}, updates_).status().code());
    RunBoth({}, {w2_});
    TrainBoth(8, i);
  }
  EXPECT_EQ(Repeats(), before + 4);
}

TEST_F(CapturesTest, WhatTheHostKnowsIsPartOfARecording) {
  Output shape, sums;
  {
    const GraphBuilding building(graph_);
    shape = Placeholder(DType::kInt32, PartialShape{2});
    const Output x = Exp(Tanh(Square(features_)));
    sums = Sum(Reshape(Mul(x, x), shape), Const(Tensor::Vector<int32_t>({1})));
  }
  Start();
  for (int round = 0; round < 12; ++round) {
    const int rows = round % 2 == 0 ? 4 : 6;
    RunBoth({{features_, Ramp({4, 6}, 0.1f)}, {shape, Tensor::Vector<int32_t>({rows, 24 / rows})}},
            {sums});
  }
  EXPECT_GT(Repeats(), 6);
}

TEST_F(CapturesTest, ResourceVariablesAndRandomNumbersAreThoseOfTheStep) {
  Node *init = nullptr, *update = nullptr;
  Output loss, value;
  {
    const GraphBuilding building(graph_);
    const Output handle =
        VarHandleOp(DType::kFloat, PartialShape{6, 3}, {.shared_name = "weights"});
    init = AssignVariableOp(handle, Const(Ramp({6, 3}, 0.2f)));
    value = ReadVariableOp(handle, DType::kFloat);
    const Output noise = RandomUniform(Const(Tensor::Vector<int32_t>({4, 6})), DType::kFloat);
    const Output y = Tanh(MatMul(Add(features_, noise), value));
    loss = Mean(Square(y), Const(Tensor::Vector<int32_t>({0, 1})));
    update = ResourceApplyGradientDescent(handle, rate_, Gradients({loss}, {value})[0]);
  }
  Start();
  for (Session* s : {device_.get(), cpu_.get()}) ASSERT_OK(s->Run({}, {}, {init}).status());
  const StepFeeds feeds = {{features_, Ramp({4, 6}, 0.1f)}, {rate_, Tensor::Scalar(0.5f)}};
  for (int round = 0; round < 10; ++round) {
    const auto found = device_->Run(feeds, {loss}, {update});
    const auto wanted = cpu_->Run(feeds, {loss}, {update});
    ASSERT_OK(found.status());
    ASSERT_OK(wanted.status());
    EXPECT_TRUE((*found)[0].Equals((*wanted)[0])) << round;
  }
  RunBoth({}, {value});
  EXPECT_GE(Repeats(), 7);
}

TEST_F(CapturesTest, StepsAtOnceDoNotMeetInARecording) {
  Output total, add;
  {
    const GraphBuilding building(graph_);
    const Variable sum("sum", Const(Ramp({6}, 0)));
    const Output ones = Div(features_, features_);
    add = AssignAdd(sum.ref(), Sum(Mul(Square(ones), ones), Const(Tensor::Vector<int32_t>({0}))));
    total = sum;
  }
  Start();
  constexpr int kThreads = 4, kSteps = 60;
  Tensor two(DType::kFloat, {2, 6});
  std::fill_n(two.data<float>(), 12, 2.0f);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kSteps; ++i) {
        EXPECT_OK(device_->Run({{features_, two}}, {}, {add}).status());
        if (i % 8 == 0) EXPECT_OK(device_->Run({}, {total}, {}).status());
      }
    });
  }
  for (std::thread& t : threads) t.join();
  const auto sum = device_->Run({}, {total}, {});
  ASSERT_OK(sum.status());
  EXPECT_EQ((*sum)[0].data<float>()[5], 2.0f * kThreads * kSteps);
  EXPECT_GT(Repeats(), 0);
}

}  // namespace
}  // namespace tenon::testing
