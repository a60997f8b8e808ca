// SPDX-License-Identifier: Apache-2.0
//
// A small graph with a loop can put values of variants into each other, as often as it likes.
#include <gmock/gmock.h>

#include "core/tensor/variant.h"
#include "ops/array/constants.h"
#include "ops/control_flow/flow.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

using Nest = Output (*)(const Output& held);

/// The value that holds `held`.
Output Optional(const Output& held) {
  return NodeBuilder("OptionalFromValue").Inputs({held}).Output();
}

Output Map(const Output& held) {
  const Output empty = NodeBuilder("EmptyTensorMap").Output();
  return NodeBuilder("TensorMapInsert").Input(empty).Input(Const(1)).Input(held).Output();
}

Output Ragged(const Output& held) {
  return NodeBuilder("RaggedTensorToVariant")
      .Inputs({})
      .Input(NodeBuilder("ExpandDims").Input(held).Input(Const(0)).Output())
      .Attr("Tsplits", DType::kInt64)
      .Attr("batched_input", false)
      .Output();
}

NodeBuilder Dataset(std::string_view op) {
  NodeBuilder builder(op);
  builder.Attr("output_types", DTypeVector{DType::kInt64});
  builder.Attr("output_shapes", std::vector<PartialShape>{Shape()});
  return builder;
}

Output Number(int64_t value) { return Const(Tensor::Scalar(value)); }

Output Take(const Output& held) {
  return Dataset("TakeDataset").Input(held).Input(Number(1)).Output();
}

/// The innermost value, which holds no other.
Output First(Nest nest) {
  if (nest != Take) return NodeBuilder("OptionalNone").Output();
  return Dataset("RangeDataset").Input(Number(0)).Input(Number(3)).Input(Number(1)).Output();
}

/// The result of `times` calls of `nest`, each on the result of the one before.
Output Nested(Nest nest, int times) {
  return WhileLoop(
      {0, First(nest)}, [&](const auto& v) { return v[0] < times; },
      [&](const auto& v) {
        return std::vector<Output>{v[0] + 1, nest(v[1])};
      })[1];
}

TEST(VariantDepth, ValuesLieInEachOtherUpToALimit) {
  for (const Nest nest : {Optional, Map, Ragged, Take}) {
    GraphSession s;
    EXPECT_OK(s.Run({}, {Nested(nest, VariantValue::kMaxDepth / 2)}));
    EXPECT_THAT(s.Run({}, {Nested(nest, 20 * VariantValue::kMaxDepth)}),
                IsError(StatusCode::kInvalidArgument, "variants lie within each other"));
  }
}

TEST(VariantDepth, TheDeepestValuesCanBeUsed) {
  GraphSession s;
  const Output optional = Nested(Optional, VariantValue::kMaxDepth - 1);
  EXPECT_OK(s.Run({}, {NodeBuilder("AddN").Inputs({optional, ZerosLike(optional)}).Output()}));
  const Output dataset = Nested(Take, VariantValue::kMaxDepth - 1);
  EXPECT_THAT(Numbers(s.Value(Dataset("DatasetToSingleElement").Input(dataset).Output())),
              ElementsAre(0));
}

TEST(VariantDepth, ADatasetThatIsHandedOnIsNoDeeper) {
  const Nest all = [](const Output& held) {
    return Dataset("TakeDataset").Input(held).Input(Number(-1)).Output();
  };
  GraphSession s;
  EXPECT_OK(s.Run(
      {}, {WhileLoop(
              {0, First(Take)}, [](const auto& v) { return v[0] < 2 * VariantValue::kMaxDepth; },
              [&](const auto& v) {
                return std::vector<Output>{v[0] + 1, all(v[1])};
              })[1]}));
}

/// Each holds the one before twice: there are far more ways down than values.
TEST(VariantDepth, ZerosOfValuesThatAreHeldTwiceCanBeCancelled) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  Output value = NodeBuilder("OptionalNone").Output();
  for (int depth = 0; depth < 60; ++depth) {
    value = NodeBuilder("OptionalFromValue").Inputs({value, value}).Output();
  }
  Node* const zeros = ZerosLike(value).node;
  ASSERT_OK(graph.error());
  const auto session = MakeLocalSession(graph);
  ASSERT_OK(session);
  EXPECT_EQ(
      (*session)->Run({}, {}, {zeros}, {.timeout = std::chrono::milliseconds(200)}).status().code(),
      StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace tenon::testing
