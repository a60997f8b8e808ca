// SPDX-License-Identifier: Apache-2.0
//
// Sessions with simulated devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/build/building.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "tests/testing/simulated_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::HasSubstr;

/// What `build` gives on that device.
Output On(const char* device, const std::function<Output()>& build) {
  const DeviceScope on(device);
  return build();
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
  // The value comes once for two nodes that want it there; on the host it is wanted too.
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
