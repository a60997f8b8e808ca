// SPDX-License-Identifier: Apache-2.0
#include "runtime/placer.h"

#include <gtest/gtest.h>

#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "ops/state_ops.h"
#include "tests/testing/registry.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::AllOps;
using testing::IsError;

std::vector<PlacementDevice> Devices() {
  std::vector<PlacementDevice> devices;
  for (const char* name : {"/job:ps/replica:0/task:0/device:CPU:0",
                           "/job:worker/replica:0/task:0/device:CPU:0",
                           "/job:worker/replica:0/task:1/device:CPU:0"}) {
    devices.push_back({*DeviceName::Parse(name), kCpu});
  }
  return devices;
}

Status Place(const Scope& scope, bool soft = false) {
  EXPECT_OK(scope.status());
  PlacementOptions options;
  options.default_device = *DeviceName::Parse("/job:worker/replica:0/task:1");
  options.allow_soft_placement = soft;
  return PlaceNodes(&scope.graph(), Devices(), options);
}

const std::string& DeviceOf(const Scope& scope, const char* node) {
  return scope.graph().Find(node)->assigned_device();
}

TEST(PlacerTest, ANodeWithoutAWishGoesToTheDefaultTask) {
  const Scope root = Scope::Root(AllOps());
  Const(root.WithName("c"), 1.0f);
  ASSERT_OK(Place(root));
  EXPECT_EQ(DeviceOf(root, "c"), "/job:worker/replica:0/task:1/device:CPU:0");
}

TEST(PlacerTest, WhatTakesAReferenceGoesToItsVariable) {
  const Scope root = Scope::Root(AllOps());
  const Output v =
      VariableV2(root.WithDevice("/job:ps").WithName("v"), Shape(), DType::kFloat);
  Assign(root.WithName("assign"), v, Const(root.WithName("c"), 1.0f));
  ASSERT_OK(Place(root));
  EXPECT_EQ(DeviceOf(root, "assign"), DeviceOf(root, "v"));
  EXPECT_NE(DeviceOf(root, "c"), DeviceOf(root, "v"));
}

TEST(PlacerTest, AnOpGoesToItsResourceWhateverWasAskedForIt) {
  const Scope root = Scope::Root(AllOps());
  const Output v = VarHandleOp(root.WithDevice("/job:ps").WithName("v"), DType::kFloat, Shape());
  VarIsInitializedOp(root.WithDevice("/job:worker/task:0").WithName("is"), v);
  ASSERT_OK(Place(root));
  EXPECT_EQ(DeviceOf(root, "is"), "/job:ps/replica:0/task:0/device:CPU:0");
}

TEST(PlacerTest, ColocatedNodesWithDifferentWishesAreAnError) {
  const Scope root = Scope::Root(AllOps());
  const Output a = Const(root.WithDevice("/job:ps").WithName("a"), 1.0f);
  Const(root.WithDevice("/job:worker").ColocatedWith(a).WithName("b"), 1.0f);
  EXPECT_THAT(Place(root), IsError(StatusCode::kInvalidArgument, "name different jobs"));
}

TEST(PlacerTest, ADeviceThatDoesNotExistIsNamedWithThoseThatDo) {
  const Scope root = Scope::Root(AllOps());
  Const(root.WithDevice("/job:nowhere/task:3").WithName("lost"), 1.0f);
  EXPECT_THAT(Place(root),
              IsError(StatusCode::kInvalidArgument,
                      "Cannot assign a device for operation lost: {{node lost}} was explicitly "
                      "assigned to /job:nowhere/task:3 but available devices are [ /job:ps"));
}

TEST(PlacerTest, SoftPlacementTakesACpuForAGpuThatIsNotThere) {
  const Scope root = Scope::Root(AllOps());
  Const(root.WithDevice("/job:worker/task:0/device:GPU:0").WithName("c"), 1.0f);
  EXPECT_FALSE(Place(root).ok());
  ASSERT_OK(Place(root, /*soft=*/true));
  EXPECT_EQ(DeviceOf(root, "c"), "/job:worker/replica:0/task:0/device:CPU:0");
}

}  // namespace
}  // namespace tenon
