// SPDX-License-Identifier: Apache-2.0
#include "runtime/compile/placer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::IsError;

std::vector<PlacementDevice> Devices() {
  std::vector<PlacementDevice> devices;
  for (const char* name :
       {"/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:0",
        "/job:worker/replica:0/task:1/device:CPU:0"}) {
    devices.push_back({*DeviceName::Parse(name), kCpu});
  }
  return devices;
}

Status Place(Graph& graph, bool soft = false) {
  EXPECT_OK(graph.error());
  PlacementOptions options;
  options.default_device = *DeviceName::Parse("/job:worker/replica:0/task:1");
  options.allow_soft_placement = soft;
  return PlaceNodes(&graph, Devices(), options);
}

const std::string& DeviceOf(const Graph& graph, const char* node) {
  return graph.Find(node)->assigned_device();
}

TEST(PlacerTest, ANodeWithoutAWishGoesToTheDefaultTask) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  Const(1.0f, {.name = "c"});
  ASSERT_OK(Place(graph));
  EXPECT_EQ(DeviceOf(graph, "c"), "/job:worker/replica:0/task:1/device:CPU:0");
}

TEST(PlacerTest, WhatTakesAReferenceGoesToItsVariable) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output v = [] {
    const DeviceScope on("/job:ps");
    return VariableV2(Shape(), DType::kFloat, {.name = "v"});
  }();
  Assign(v, Const(1.0f, {.name = "c"}), {.name = "assign"});
  ASSERT_OK(Place(graph));
  EXPECT_EQ(DeviceOf(graph, "assign"), DeviceOf(graph, "v"));
  EXPECT_NE(DeviceOf(graph, "c"), DeviceOf(graph, "v"));
}

TEST(PlacerTest, AnOpGoesToItsResourceWhateverWasAskedForIt) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output v = [] {
    const DeviceScope on("/job:ps");
    return VarHandleOp(DType::kFloat, Shape(), {.name = "v"});
  }();
  const DeviceScope on("/job:worker/task:0");
  VarIsInitializedOp(v, {.name = "is"});
  ASSERT_OK(Place(graph));
  EXPECT_EQ(DeviceOf(graph, "is"), "/job:ps/replica:0/task:0/device:CPU:0");
}

TEST(PlacerTest, OpsThatAskForSeveralDevicesGoToTheirResourceToo) {
  std::vector<PlacementDevice> devices;
  for (int i = 0; i < 3; ++i) {
    devices.push_back(
        {*DeviceName::Parse(StrCat("/job:worker/replica:0/task:1/device:CPU:", i)), kCpu});
  }
  for (const bool soft : {false, true}) {
    Graph graph(AllOps());
    GraphBuilding building(graph);
    const Output v = [] {
      const DeviceScope on("/device:CPU:1");
      return VarHandleOp(DType::kFloat, Shape(), {.name = "v"});
    }();
    for (const char* device : {"/device:CPU:0", "/device:CPU:2"}) {
      const DeviceScope on(device);
      VarIsInitializedOp(v);
    }
    PlacementOptions options;
    options.default_device = devices[0].name;
    options.allow_soft_placement = soft;
    ASSERT_OK(PlaceNodes(&graph, devices, options));
    EXPECT_EQ(DeviceOf(graph, "v"), "/job:worker/replica:0/task:1/device:CPU:1");
  }
}

TEST(PlacerTest, ColocatedNodesWithDifferentWishesAreAnError) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  {
    const DeviceScope on("/job:ps");
    Const(1.0f, {.name = "a"});
  }
  const DeviceScope on("/job:worker");
  NodeBuilder("NoOp", "b").Attr("_class", std::vector<std::string>{"loc:@a"}).Finish();
  EXPECT_THAT(Place(graph), IsError(StatusCode::kInvalidArgument, "name different jobs"));
}

TEST(PlacerTest, ADeviceThatDoesNotExistIsNamedWithThoseThatDo) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const DeviceScope on("/job:nowhere/task:3");
  Const(1.0f, {.name = "lost"});
  EXPECT_THAT(Place(graph),
              IsError(StatusCode::kInvalidArgument,
                      "Cannot assign a device for operation lost: {{node lost}} was explicitly "
                      "assigned to /job:nowhere/task:3 but available devices are [ /job:ps"));
}

TEST(PlacerTest, SoftPlacementTakesACpuForAGpuThatIsNotThere) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const DeviceScope on("/job:worker/task:0/device:GPU:0");
  Const(1.0f, {.name = "c"});
  EXPECT_FALSE(Place(graph).ok());
  ASSERT_OK(Place(graph, /*soft=*/true));
  EXPECT_EQ(DeviceOf(graph, "c"), "/job:worker/replica:0/task:0/device:CPU:0");
}

TEST(PlacerTest, ADeviceOfAnUnknownKindGetsWhatAsksForIt) {
  const std::string task = "/job:worker/replica:0/task:0";
  const std::vector<PlacementDevice> devices = {
      {*DeviceName::Parse(task + "/device:CPU:0"), kCpu},
      {*DeviceName::Parse(task + "/device:XLA_CPU:0"), DeviceKind::Find("XLA_CPU")}};
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output free = NoOp({.name = "free"});
  {
    const DeviceScope on("/device:XLA_CPU:0");
    NoOp({.name = "bound"});
  }
  PlacementOptions options;
  options.default_device = devices[0].name;
  ASSERT_OK(PlaceNodes(&graph, devices, options));
  EXPECT_EQ(DeviceOf(graph, "free"), devices[0].name.ToString());
  EXPECT_EQ(DeviceOf(graph, "bound"), devices[1].name.ToString());
}

TEST(PlacerTest, AGpuThatIsNotThereIsExplainedWhereTheReasonIsKnown) {
  const std::vector<PlacementDevice> devices = {
      {*DeviceName::Parse("/job:worker/replica:0/task:0/device:CPU:0"), kCpu},
      {*DeviceName::Parse("/job:worker/replica:0/task:1/device:CPU:0"), kCpu}};
  PlacementOptions options;
  options.default_device = devices[0].name;
  options.why_no_gpu = "the driver is too old";
  const auto error = [&](const std::string& where) {
    Graph graph(AllOps());
    GraphBuilding building(graph);
    const DeviceScope on(where);
    Const(1.0f, {.name = "c"});
    return std::string(Message(PlaceNodes(&graph, devices, options)));
  };
  const std::string why = " No GPU is there: the driver is too old.\n";
  EXPECT_THAT(error("/device:GPU:0"), ::testing::HasSubstr(why));
  EXPECT_THAT(error("/job:worker/device:GPU:0"), ::testing::HasSubstr(why));
  EXPECT_THAT(error("/job:worker/task:1/device:GPU:0"), ::testing::Not(::testing::HasSubstr(why)));
  EXPECT_THAT(error("/job:ps"), ::testing::Not(::testing::HasSubstr(why)));
}

}  // namespace
}  // namespace tenon
