// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/graph/graph.h"
#include "core/op/host_args.h"
#include "ops/register.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

// Which arguments are in host memory on devices that have their own.

namespace tenon::testing {
namespace {

/// The shapes inferred of a use of the op whose input `hidden` is no constant; none: all are.
std::vector<PartialShape> InferredShapes(const OpRegistration& op, AttributeMap attrs,
                                         const std::vector<Tensor>& inputs, int hidden) {
  InferAttributes(op.schema, inputs, &attrs);
  Graph graph(AllOps());
  std::vector<Endpoint> sources;
  for (const Tensor& t : inputs) {
    const int i = static_cast<int>(sources.size());
    const AttributeMap constant = {{"dtype", t.dtype()}, {"value", t}};
    const AttributeMap fed = {{"dtype", t.dtype()}, {"shape", PartialShape(t.shape())}};
    sources.push_back({graph
                           .AddNode(StrCat("in", i), i == hidden ? "Placeholder" : "Const",
                                    i == hidden ? fed : constant)
                           .value(),
                       0});
  }
  const Node* const node = graph.AddNode("op", op.schema.name, attrs, sources).value();
  std::vector<PartialShape> shapes;
  for (int i = 0; i < node->num_outputs(); ++i) shapes.push_back(node->output_shape(i));
  return shapes;
}

/// A kernel is told its outputs' shapes before a device has computed its inputs.
TEST(HostMemory, InputsWhoseValuesDecideShapesAreInIt) {
  for (const OpRegistration* op : AllOps().All()) {
    for (const OpExample& example : op->examples) {
      AttributeMap attrs = TypeChoices(*op, example)[0];
      const std::vector<Tensor> inputs = SampleInputs(*op, example, attrs, 3);
      InferAttributes(op->schema, inputs, &attrs);
      ASSERT_OK(ApplySchema(op->schema, &attrs));
      const std::vector<bool> on_host = HostArgs(op->schema.inputs, attrs).value();
      const auto all = InferredShapes(*op, attrs, inputs, -1);
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (on_host[i]) continue;
        EXPECT_EQ(InferredShapes(*op, attrs, inputs, static_cast<int>(i)), all)
            << op->schema.name << ", input " << i;
      }
    }
  }
}

TEST(HostMemory, StringsAndResourcesAreInIt) {
  const OpSchema& split = AllOps().Find("StringSplit")->schema;
  const OpSchema& read = AllOps().Find("ReadVariableOp")->schema;
  const OpSchema& assign = AllOps().Find("Assign")->schema;
  const AttributeMap types = {{"dtype", DType::kFloat}, {"T", DType::kFloat}};
  using Args = std::vector<bool>;
  EXPECT_EQ(HostArgs(split.inputs, types).value(), Args({true, true}));
  EXPECT_EQ(HostArgs(read.inputs, types).value(), Args({true}));
  EXPECT_EQ(HostArgs(read.outputs, types).value(), Args({false}));
  EXPECT_EQ(HostArgs(assign.inputs, types).value(), Args({true, false}));
}

TEST(HostMemory, TensorsOfOneArgumentAreTogether) {
  const OpSchema& concat = AllOps().Find("ConcatV2")->schema;
  const AttributeMap attrs = {{"N", 3}, {"T", DType::kFloat}, {"Tidx", DType::kInt32}};
  EXPECT_EQ(HostArgs(concat.inputs, attrs).value(), std::vector<bool>({false, false, false, true}));
  EXPECT_THAT(HostArgs(concat.inputs, {{"T", DType::kFloat}}).status(),
              IsError(StatusCode::kNotFound, "attr 'N' is missing"));
}

}  // namespace
}  // namespace tenon::testing
