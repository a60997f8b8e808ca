// SPDX-License-Identifier: Apache-2.0
#include "runtime/compile/collective_order.h"

#include <gmock/gmock.h>

#include "core/base/sanitizers.h"
#include "ops/register.h"
#include "tests/testing/cpu_time.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

TEST(CollectiveOrderTest, BranchesMayBeNestedDeeply) {
  const testing::CpuTime time;
  Graph graph(AllOps());
  const auto add = [&](const std::string& name, std::string_view op, AttributeMap attrs,
                       const std::vector<Endpoint>& inputs) {
    const auto node = graph.AddNode(name, op, std::move(attrs), inputs);
    EXPECT_OK(node);
    return *node;
  };
  const auto constant = [&](const std::string& name, const Tensor& value) {
    return add(name, "Const", {{"dtype", value.dtype()}, {"value", value}}, {});
  };
  Node* const predicate = constant("predicate", Tensor::Scalar(true));
  Endpoint value = {constant("value", Tensor::Scalar(1.0f)), 0};
  for (int i = 0; i < (kSanitized ? 20000 : 200000); ++i) {
    value = {add(StrCat("switch", i), "Switch", {{"T", DType::kFloat}}, {value, {predicate, 0}}),
             1};
  }
  Node* const a = add("a", "HorovodAllreduce", {{"T", DType::kFloat}}, {value});
  Node* const b = add("b", "HorovodAllreduce", {{"T", DType::kFloat}}, {value});
  ASSERT_OK(OrderCollectives(&graph));
  EXPECT_THAT(b->control_inputs(), ::testing::ElementsAre(a));
  EXPECT_LT(time.seconds(), testing::kLinearSeconds);
}

}  // namespace
}  // namespace tenon
