// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/cost_graph.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(CostGraphTest, NodesAreNumberedAcrossPartitionsAndHaveWhatTheyCost) {
  GraphDef graph;
  for (const char* name : {"a", "b", "c"}) {
    graph.add_node()->set_name(name);
    graph.mutable_node(graph.node_size() - 1)->set_device("/device:CPU:0");
  }
  *graph.mutable_node(1)->add_input() = "a:2";
  *graph.mutable_node(2)->add_input() = "b";
  *graph.mutable_node(2)->add_input() = "^a";
  StepStats stats;
  NodeExecStats* const ran = stats.add_dev_stats()->add_node_stats();
  ran->set_node_name("b");
  ran->set_op_end_rel_micros(7);
  TensorDescription* const tensor = ran->add_output()->mutable_tensor_description();
  tensor->set_dtype(DT_FLOAT);
  tensor->mutable_allocation_description()->set_requested_bytes(12);
  *stats.mutable_dev_stats(0)->add_node_stats() = *ran;  // a second time, in a loop
  stats.mutable_dev_stats(0)->add_node_stats()->set_node_name("of another partition");

  CostGraphDef costs;
  AddCosts(graph, {}, &costs);
  AddCosts(graph, stats, &costs);
  ASSERT_EQ(costs.node_size(), 6);
  EXPECT_EQ(costs.node(1).compute_cost(), 0);
  const CostGraphDef::Node& b = costs.node(4);
  EXPECT_EQ(b.name(), "b");
  EXPECT_EQ(b.id(), 4);
  EXPECT_EQ(b.compute_cost(), 14);
  ASSERT_EQ(b.output_info_size(), 1);
  EXPECT_EQ(b.output_info(0).size(), 12);
  ASSERT_EQ(b.input_info_size(), 1);
  EXPECT_EQ(b.input_info(0).preceding_node(), 3);
  EXPECT_EQ(b.input_info(0).preceding_port(), 2);
  EXPECT_FALSE(b.is_final());
  EXPECT_TRUE(costs.node(5).is_final());
  EXPECT_EQ(costs.node(5).control_input(0), 3);
}

}  // namespace
}  // namespace tenon
