// SPDX-License-Identifier: Apache-2.0
//
// What kernels that run as a group must not forget: what is around them in the graph, the session
// whose variables they use, and what others wait for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/proto/proto_io_graph.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/cuda/device_kind.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/queues/queues_ops.h"
#include "ops/state/state_ops.h"
#include "ops/strings/strings_ops.h"
#include "runtime/accelerator/stream_device.h"
#include "runtime/device/session_device.h"
#include "tests/testing/device_and_cpu_test.h"

namespace tenon::testing {
namespace {

Tensor Filled(const Shape& shape, float value) {
  Tensor t(DType::kFloat, shape);
  std::fill_n(t.data<float>(), t.num_elements(), value);
  return t;
}

/// Four kernels of the device, so that they are a group.
Output Curve(const Output& x) { return Exp(Tanh(Square(Mul(x, x)))); }

/// Something that the host does behind `output`.
Output HostStep(const Output& output) {
  const ControlDependencies after({output});
  return AsString(Const(Tensor::Scalar<int32_t>(1)));
}

class CaptureBordersTest : public DeviceAndCpuTest {};

TEST_F(CaptureBordersTest, AConstantThatWaitsMakesItsGroupWait) {
  Output x, y;
  {
    const GraphBuilding building(graph_);
    x = Placeholder(DType::kFloat, PartialShape{4});
    const Variable v("v", Const(Filled({4}, 0)));
    const Output add = AssignAdd(v.ref(), Curve(x));
    const Output behind = HostStep(add);
    Output factor;
    {
      const ControlDependencies after({behind});
      factor = Const(Filled({4}, 2));
    }
    y = Exp(Tanh(Sqrt(Mul(v.ref(), factor))));
  }
  Start();
  for (int i = 0; i < 4; ++i) RunBoth({{x, Filled({4}, 0.5f)}}, {y});
}

TEST_F(CaptureBordersTest, AReferenceIsReadWhenItIsNeeded) {
  Output x, y;
  {
    const GraphBuilding building(graph_);
    x = Placeholder(DType::kFloat, PartialShape{4});
    const Variable v("v", Const(Filled({4}, 0)));
    const Output assigned = Assign(v.ref(), Const(Filled({4}, 1)));
    const Output behind = HostStep(assigned);
    Output add;
    {
      const ControlDependencies after({behind});
      add = AssignAdd(v.ref(), Square(x));
    }
    const ControlDependencies after({add});
    y = Exp(Tanh(Mul(assigned, assigned)));
  }
  Start();
  for (int i = 0; i < 4; ++i) RunBoth({{x, Filled({4}, 0.5f)}}, {y});
}

TEST_F(CaptureBordersTest, AVariableTakesWhatAGroupGivesInAnyShape) {
  Output x, assign, value;
  {
    const GraphBuilding building(graph_);
    x = Placeholder(DType::kFloat, PartialShape{-1});
    const Variable v("v", Const(Filled({4}, 0)));
    const Output y = Curve(x);
    const Output behind = HostStep(y);
    const ControlDependencies after({behind});
    assign = Assign(v.ref(), y, {.validate_shape = false});
    value = v.ref();
  }
  Start();
  const int64_t before = SharedSimulatedDriver().repeats();
  for (const int64_t n : {4, 4, 4, 6, 6, 6, 4, 6, 4, 6}) {
    RunBoth({{x, Filled({n}, 0.1f * static_cast<float>(n))}}, std::vector<Output>(),
            std::vector<Output>{assign});
    RunBoth({}, {value});
  }
  EXPECT_GE(SharedSimulatedDriver().repeats(), before + 6)
      << "no variable keeps a capture's memory";
}

TEST_F(CaptureBordersTest, ASessionWithItsOwnVariablesUpdatesThose) {
  Output x, value;
  Node *init = nullptr, *assign = nullptr;
  {
    const GraphBuilding building(graph_);
    x = Placeholder(DType::kFloat, PartialShape{4});
    const Output handle = VarHandleOp(DType::kFloat, PartialShape{4}, {.shared_name = "w"});
    init = AssignVariableOp(handle, Const(Filled({4}, 0)));
    assign = AssignVariableOp(handle, Curve(x));
    value = ReadVariableOp(handle, DType::kFloat);
  }
  GraphDef proto;
  ASSERT_OK(GraphToProto(graph_, &proto));
  const Graph read = GraphFromProto(proto, SimulatedOps(), {.allow_internal_names = true}).value();
  StreamDevice shared("/job:localhost/replica:0/task:0/device:GPU:0", kCuda,
                      SharedSimulatedDriver(), 1 << 30, std::make_shared<ResourceStore>());
  LocalSessionOptions options;
  options.resources = std::make_shared<ResourceStore>();
  options.allow_soft_placement = true;
  options.other_devices.push_back(
      std::make_shared<SessionDevice>(shared, shared.name(), options.resources));
  device_ = MakeLocalSession(read, options).value();
  device_->AcceptOutputsOf(graph_);
  cpu_ = MakeLocalSession(graph_, {}).value();
  const int64_t before = SharedSimulatedDriver().repeats();
  for (Session* s : {device_.get(), cpu_.get()}) ASSERT_OK(s->Run({}, {}, {init}).status());
  for (int i = 0; i < 8; ++i) {
    const StepFeeds feeds = {{x, Filled({4}, 0.1f * static_cast<float>(i))}};
    for (Session* s : {device_.get(), cpu_.get()}) ASSERT_OK(s->Run(feeds, {}, {assign}).status());
    RunBoth({}, {value});
  }
  EXPECT_GE(SharedSimulatedDriver().repeats(), before + 5);
  EXPECT_TRUE(shared.resources().Usages().empty());
  device_ = nullptr;
}

/// How a step reaches the values that wait.
enum class Waiting { kQueue, kQueueByReference, kStagingArea };

/// A step puts a value into a queue or a staging area of one place, and takes one out.
class CapturesBesideQueuesTest : public CaptureBordersTest,
                                 public ::testing::WithParamInterface<Waiting> {
 protected:
  void MakeQueue() {
    if (GetParam() == Waiting::kQueue) queue_ = FIFOQueueV2({DType::kFloat}, {.capacity = 1});
    if (GetParam() == Waiting::kQueueByReference) {
      queue_ = FIFOQueue({DType::kFloat}, {.capacity = 1});
    }
  }
  Node* Put(const Output& value) {
    if (GetParam() == Waiting::kQueue) return QueueEnqueueV2(queue_, {value});
    if (GetParam() == Waiting::kQueueByReference) return QueueEnqueue(queue_, {value});
    return Stage({value}, {.capacity = 1, .shared_name = "full"});
  }
  Output Take() {
    if (GetParam() == Waiting::kQueue) return QueueDequeueV2(queue_, {DType::kFloat})[0];
    if (GetParam() == Waiting::kQueueByReference) return QueueDequeue(queue_, {DType::kFloat})[0];
    return Unstage({DType::kFloat}, {.capacity = 1, .shared_name = "full"})[0];
  }

  Output queue_;
};

TEST_P(CapturesBesideQueuesTest, WhatFillsOneDoesNotWaitForWhatEmptiesIt) {
  Output x, y;
  Node* put = nullptr;
  {
    const GraphBuilding building(graph_);
    x = Placeholder(DType::kFloat, PartialShape{4});
    MakeQueue();
    put = Put(Curve(x));
    y = Curve(Take());
  }
  Start();
  for (int i = 0; i < 4; ++i) RunBoth({{x, Filled({4}, 0.1f * static_cast<float>(i))}}, {y}, {put});
}

TEST_P(CapturesBesideQueuesTest, WhatFollowsAPutIntoAFullOneDoesNotHoldBackWhatMakesRoom) {
  Node* fill = nullptr;
  Output x, behind, taken;
  {
    const GraphBuilding building(graph_);
    x = Placeholder(DType::kFloat, PartialShape{4});
    MakeQueue();
    fill = Put(Const(Filled({4}, 1)));
    Node* const wait = Put(Const(Filled({4}, 2)));
    {
      const ControlDependencies after({wait});
      behind = Curve(x);
    }
    const ControlDependencies after({HostStep(Curve(Neg(x)))});
    taken = Take();
  }
  Start();
  RunBoth({}, {}, {fill});
  for (int i = 0; i < 4; ++i) RunBoth({{x, Filled({4}, 0.5f)}}, {behind, taken});
}

INSTANTIATE_TEST_SUITE_P(All, CapturesBesideQueuesTest,
                         ::testing::Values(Waiting::kQueue, Waiting::kQueueByReference,
                                           Waiting::kStagingArea));

}  // namespace
}  // namespace tenon::testing
