// SPDX-License-Identifier: Apache-2.0
// Nodes that do nothing themselves, and what waits for them.

#include <gmock/gmock.h>

#include <bitset>
#include <random>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/queues/queues_ops.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "runtime/session/local_session.h"
#include "tests/testing/gives.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::Gives;

constexpr int kNodes = 120;

/// A random graph of nodes that enqueue their number and nodes that do nothing.
struct OrderedGraph {
  explicit OrderedGraph(uint32_t seed) {
    std::mt19937 random(seed);
    const GraphBuilding building(graph);
    const Output queue = FIFOQueueV2({DType::kInt32}, {.shapes = {Shape()}});
    std::vector<Output> nodes;
    std::bitset<kNodes> awaited;
    for (int i = 0; i < kNodes; ++i) {
      std::vector<Output> waits_for;
      const int count = static_cast<int>(random() % 4);
      for (int k = 0; k < count && i > 0; ++k) {
        const int before = static_cast<int>(random() % i);
        waits_for.push_back(nodes[before]);
        after[i] |= after[before];
        after[i].set(before);
        awaited.set(before);
      }
      const ControlDependencies dependencies(waits_for);
      enqueues[i] = random() % 3 == 0;
      nodes.emplace_back(enqueues[i] ? QueueEnqueueV2(queue, {Const(i)}) : NoOp());
      names.push_back(nodes.back().node->name());
    }
    dequeued = QueueDequeueManyV2(queue, Const(static_cast<int>(enqueues.count())), {DType::kInt32},
                                  {.name = "dequeued"})[0];
    std::vector<Output> last;
    for (int i = 0; i < kNodes; ++i) {
      if (!awaited[i]) last.push_back(nodes[i]);
    }
    const ControlDependencies all(last);
    NoOp({.name = "all"});
  }

  Graph graph{AllOps()};
  std::bitset<kNodes> enqueues;
  std::array<std::bitset<kNodes>, kNodes> after;  // which nodes each one waits for
  std::vector<std::string> names;
  Output dequeued;
};

void ExpectOrder(const OrderedGraph& ordered, const Tensor& numbers) {
  std::bitset<kNodes> seen;
  for (int64_t k = 0; k < numbers.num_elements(); ++k) {
    const int32_t i = numbers.data<int32_t>()[k];
    const std::bitset<kNodes> missing = ordered.after[i] & ordered.enqueues & ~seen;
    EXPECT_TRUE(missing.none()) << ordered.names[i] << " did not wait: " << missing;
    seen.set(i);
  }
  EXPECT_EQ(seen, ordered.enqueues);
}

TEST(OrderNodesTest, WhatWaitsForThemWaitsForWhatTheyWaitFor) {
  for (const uint32_t seed : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u}) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const OrderedGraph ordered(seed);
    ASSERT_OK(ordered.graph.error());
    for (const int threads : {1, 4}) {
      LocalSessionOptions options;
      options.threads = threads;
      options.passes.enabled = false;
      const auto session = MakeLocalSession(ordered.graph, options);
      ASSERT_OK(session);
      for (const bool traced : {false, true, false}) {
        std::vector<NodeTrace> trace;
        ASSERT_OK((*session)->Run({}, {}, {"all"}, {.trace = traced ? &trace : nullptr}));
        const auto numbers = (*session)->Run<Tensor>({}, ordered.dequeued);
        ASSERT_OK(numbers);
        ExpectOrder(ordered, *numbers);
        std::vector<std::string> recorded;
        for (const NodeTrace& node : trace) recorded.push_back(node.name);
        if (traced) EXPECT_THAT(recorded, ::testing::IsSupersetOf(ordered.names));
      }
    }
  }
}

TEST(OrderNodesTest, WhatWaitsForABranchNotTakenDoesNotRun) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Output taken = Placeholder(DType::kBool, {}, {.name = "taken"});
  const Output branch = Switch(1.0f, taken).output_true;
  {
    // The device of these has no part of the condition.
    const DeviceScope there("/device:CPU:1");
    const Output count = VariableV2(Shape(), DType::kFloat, {.name = "count"});
    Assign(count, Const(0.0f), {.name = "init"});
    const auto after = [](const std::vector<Output>& nodes) {
      const ControlDependencies dependencies(nodes);
      return Output(NoOp());
    };
    const Output here = Identity(branch);
    const Output chain = after({after({after({here})})});
    const Output joined = after({chain, after({}), after({after({})})});
    const ControlDependencies dependencies({joined});
    AssignAdd(count, Const(1.0f), {.name = "add"});
  }
  LocalSessionOptions options;
  options.devices.cpus = 2;
  options.passes.enabled = false;
  const auto session = MakeLocalSession(graph, options);
  ASSERT_OK(session);
  ASSERT_OK((*session)->Run({}, {}, {"init"}));
  for (const auto& [taken_now, wanted] : {std::pair(false, 0.0f), {true, 1.0f}, {false, 1.0f}}) {
    ASSERT_OK((*session)->Run({{"taken", taken_now}}, {}, {"add"}));
    EXPECT_THAT((*session)->Run<float>({}, "count"), Gives(wanted));
  }
}

TEST(OrderNodesTest, ALongChainEnds) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Output count = VariableV2(Shape(), DType::kFloat, {.name = "count"});
  Assign(count, Const(0.0f), {.name = "init"});
  Output last = AssignAdd(count, Const(1.0f));
  for (int i = 0; i < 1000; ++i) {
    const ControlDependencies after({last});
    last = NoOp();
  }
  const ControlDependencies after({last});
  const Output read = Identity(count);
  LocalSessionOptions options;
  options.passes.enabled = false;
  const auto session = MakeLocalSession(graph, options);
  ASSERT_OK(session);
  ASSERT_OK((*session)->Run({}, {}, {"init"}));
  for (const float steps : {1.0f, 2.0f})
    EXPECT_THAT((*session)->Run<float>({}, read), Gives(steps));
}

}  // namespace
}  // namespace tenon
