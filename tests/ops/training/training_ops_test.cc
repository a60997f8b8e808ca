// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <thread>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/state/state_ops.h"
#include "ops/training/training_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

/// Two variables of each kind with the same values, so that both forms of a step can be compared.
class TrainingOpsTest : public ::testing::Test {
 protected:
  Output Ref(const std::string& name, std::vector<float> value) {
    const Output v = VariableV2({3}, DType::kFloat, {.name = name});
    inits.push_back(Assign(v, Const(value)));
    return v;
  }
  Output Handle(const std::string& name, std::vector<float> value) {
    const Output v = VarHandleOp(DType::kFloat, {3}, {.name = name});
    inits.push_back(AssignVariableOp(v, Const(value)));
    return v;
  }
  Output C(float x) { return Const(x); }
  void Expect(Output variable, const std::vector<double>& wanted) {
    if (variable.dtype() == DType::kResource) {
      variable = ReadVariableOp(variable, DType::kFloat);
    }
    EXPECT_THAT(Numbers(s.Value(variable)), Pointwise(DoubleNear(1e-6), wanted));
  }
  void Init() { ASSERT_OK(s.Run({}, inits)); }

  GraphSession s;
  std::vector<Output> inits;
  Output grad = Const({1.0f, -2.0f, 0.5f});
};

TEST_F(TrainingOpsTest, GradientDescent) {
  const Output v = Ref("v", {1, 2, 3}), r = Handle("r", {1, 2, 3});
  Init();
  const std::vector<double> wanted = {0.9, 2.2, 2.95};
  EXPECT_THAT(Numbers(s.Value(ApplyGradientDescent(v, C(0.1f), grad))),
              Pointwise(DoubleNear(1e-6), wanted));
  ASSERT_OK(s.Run({}, {ResourceApplyGradientDescent(r, C(0.1f), grad)}));
  Expect(v, wanted);
  Expect(r, wanted);
}

TEST_F(TrainingOpsTest, GradientDescentWithTheVariableItselfAsGradient) {
  const Output v = Ref("v", {1, 2, 3});
  Init();
  ASSERT_OK(s.Run({}, {ApplyGradientDescent(v, C(0.5f), Identity(v))}));
  Expect(v, {0.5, 1, 1.5});
}

TEST_F(TrainingOpsTest, Momentum) {
  for (const bool nesterov : {false, true}) {
    const Output v = Ref(StrCat("v", nesterov), {1, 2, 3}),
                 m = Ref(StrCat("m", nesterov), {1, 1, 0});
    const Output r = Handle(StrCat("r", nesterov), {1, 2, 3});
    const Output rm = Handle(StrCat("rm", nesterov), {1, 1, 0});
    Init();
    ASSERT_OK(s.Run(
        {}, {ApplyMomentum(v, m, C(0.1f), grad, C(0.9f), {.use_nesterov = nesterov}),
             ResourceApplyMomentum(r, rm, C(0.1f), grad, C(0.9f), {.use_nesterov = nesterov})}));
    const std::vector<double> accum = {1.9, -1.1, 0.5};
    std::vector<double> wanted = {1, 2, 3};
    const std::vector<double> g = {1, -2, 0.5};
    for (int i = 0; i < 3; ++i) {
      wanted[i] -= 0.1 * (nesterov ? g[i] + 0.9 * accum[i] : accum[i]);
    }
    Expect(m, accum);
    Expect(rm, accum);
    Expect(v, wanted);
    Expect(r, wanted);
  }
}

TEST_F(TrainingOpsTest, Adagrad) {
  const Output v = Ref("v", {1, 2, 3}), a = Ref("a", {0.1f, 0.1f, 0.1f});
  const Output r = Handle("r", {1, 2, 3}), ra = Handle("ra", {0.1f, 0.1f, 0.1f});
  Init();
  ASSERT_OK(
      s.Run({}, {ApplyAdagrad(v, a, C(0.1f), grad), ResourceApplyAdagrad(r, ra, C(0.1f), grad)}));
  const std::vector<double> accum = {1.1, 4.1, 0.35};
  const std::vector<double> wanted = {1 - 0.1 / std::sqrt(1.1), 2 + 0.2 / std::sqrt(4.1),
                                      3 - 0.05 / std::sqrt(0.35)};
  Expect(a, accum);
  Expect(ra, accum);
  Expect(v, wanted);
  Expect(r, wanted);
  ASSERT_OK(s.Run({}, {ApplyAdagrad(v, a, C(0.1f), grad, {.update_slots = false})}));
  Expect(a, accum);
}

TEST_F(TrainingOpsTest, Adam) {
  const Output v = Ref("v", {1, 2, 3}), m = Ref("m", {0, 0, 0}), u = Ref("u", {0, 0, 0});
  const Output r = Handle("r", {1, 2, 3}), rm = Handle("rm", {0, 0, 0}),
               ru = Handle("ru", {0, 0, 0});
  Init();
  ASSERT_OK(
      s.Run({}, {ApplyAdam(v, m, u, 0.9f, 0.999f, 0.01f, 0.9f, 0.999f, 1e-8f, grad),
                 ResourceApplyAdam(r, rm, ru, 0.9f, 0.999f, 0.01f, 0.9f, 0.999f, 1e-8f, grad)}));
  // The first step of Adam is the learning rate in the direction of the gradient.
  EXPECT_THAT(Numbers(s.Value(v)), Pointwise(DoubleNear(1e-5), {0.99, 2.01, 2.99}));
  Expect(m, {0.1, -0.2, 0.05});
  Expect(u, {0.001, 0.004, 0.00025});
  Expect(rm, {0.1, -0.2, 0.05});
  EXPECT_THAT(Numbers(s.Value(ReadVariableOp(r, DType::kFloat))),
              Pointwise(DoubleNear(1e-5), {0.99, 2.01, 2.99}));
}

TEST_F(TrainingOpsTest, MistakesAreErrorsAndChangeNothing) {
  const Output v = Ref("v", {1, 2, 3}), empty = VariableV2({3}, DType::kFloat, {.name = "no"});
  const Output handle = VarHandleOp(DType::kFloat, {3}, {.name = "none"});
  Init();
  const Output fed = Placeholder(DType::kFloat);
  const Session::Feeds two = {{fed.name(), Tensor::Vector<float>({1, 2})}};
  EXPECT_THAT(s.Run({}, {ApplyGradientDescent(v, C(1), fed)}, two),
              IsError(StatusCode::kInvalidArgument, "do not have the same shape"));
  EXPECT_THAT(s.Run({}, {ApplyGradientDescent(v, fed, grad)}, two),
              IsError(StatusCode::kInvalidArgument, "alpha is not a scalar: [2]"));
  EXPECT_THAT(s.Run({}, {ApplyMomentum(v, empty, C(1), grad, C(1))}),
              IsError(StatusCode::kFailedPrecondition, "uninitialized value no"));
  EXPECT_THAT(s.Run({}, {ResourceApplyGradientDescent(handle, C(1), grad)}),
              IsError(StatusCode::kFailedPrecondition, "Could not find variable none"));
  Expect(v, {1, 2, 3});
}

TEST_F(TrainingOpsTest, StepsOverTheSameVariablesInAnyOrderDoNotBlockEachOther) {
  const Output a = Ref("a", {0, 0, 0}), b = Ref("b", {0, 0, 0});
  Init();
  const Output ab = ApplyMomentum(a, b, C(0.1f), grad, C(0.5f));
  const Output ba = ApplyMomentum(b, a, C(0.1f), grad, C(0.5f));
  ASSERT_OK(s.Run({}, {ab}));
  ASSERT_OK(s.Run({}, {ba}));
  std::vector<std::thread> threads;
  for (const Output& step : {ab, ba, ab, ba}) {
    threads.emplace_back([&, step] {
      for (int i = 0; i < 200; ++i) ASSERT_OK(s.Run({}, {step}));
    });
  }
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace tenon::testing
