// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/graph/graph.h"
#include "ops/register.h"
#include "tests/testing/op_runner.h"

// What every op must do, read from the registry.

namespace tenon::testing {
namespace {

std::string Describe(const AttributeMap& attrs) {
  std::string text;
  for (const auto& [name, value] : attrs) StrAppend(&text, " ", name, "=", value.ToString());
  return text;
}

void CheckResult(const OpRegistration& op, const OpResult& result) {
  ASSERT_TRUE(result.status.ok()) << result.status;
  ASSERT_EQ(result.outputs.size(), result.declared_types.size());
  for (size_t i = 0; i < result.outputs.size(); ++i) {
    const Tensor& out = result.outputs[i];
    if (!out.valid()) {
      // A branch that is not taken.
      EXPECT_TRUE(op.schema.name == "Switch" || op.schema.name == "RefSwitch");
      continue;
    }
    EXPECT_EQ(out.dtype(), BaseType(result.declared_types[i]));
    EXPECT_TRUE(result.declared_shapes[i].IsCompatibleWith(out.shape()))
        << "output " << i << " was declared " << result.declared_shapes[i].ToString() << " and is "
        << out.shape().ToString();
  }
}

TEST(Conformance, EveryOpWithAKernelHasDocumentationAShapeFunctionAndAnExample) {
  int num_with_kernels = 0;
  for (const OpRegistration* op : AllOps().All()) {
    SCOPED_TRACE(op->schema.name);
    if (op->kernels.empty() && !op->schema.is_runtime_only()) continue;
    ++num_with_kernels;
    EXPECT_FALSE(op->schema.doc.empty());
    EXPECT_NE(op->shape, nullptr);
    EXPECT_FALSE(op->examples.empty() && op->no_example_reason.empty())
        << "neither an Example nor a NoExample";
    EXPECT_FALSE(!op->schema.is_differentiable && op->gradient);
  }
  EXPECT_GE(num_with_kernels, 1034);
}

TEST(Conformance, EveryExampleRunsInEveryDtypeWithTheDeclaredShape) {
  for (const OpRegistration* op : AllOps().All()) {
    for (const OpExample& example : op->examples) {
      for (const AttributeMap& attrs : TypeChoices(*op, example)) {
        const std::vector<Tensor> inputs = SampleInputs(*op, example, attrs, 7);
        SCOPED_TRACE(StrCat(op->schema.name, Describe(attrs)));
        CheckResult(*op, RunOp(op->schema.name, inputs, attrs));
        CheckResult(*op, RunOp(op->schema.name, inputs, attrs, /*hide_inputs=*/true));
      }
    }
  }
}

TEST(Conformance, AKernelLeavesInputsThatOthersReadAsTheyAre) {
  for (const OpRegistration* op : AllOps().All()) {
    for (const OpExample& example : op->examples) {
      const AttributeMap attrs = TypeChoices(*op, example)[0];
      const std::vector<Tensor> inputs = SampleInputs(*op, example, attrs, 11);
      std::vector<Tensor> before;
      for (const Tensor& t : inputs) before.push_back(t.Copy().value());
      EXPECT_OK(RunOp(op->schema.name, inputs, attrs).status);
      for (size_t i = 0; i < inputs.size(); ++i) {
        EXPECT_TRUE(inputs[i].Equals(before[i])) << op->schema.name << " changed input " << i;
      }
    }
  }
}

/// Any shapes and dtypes at all: the kernel answers with a result or an error, and does not crash.
TEST(Conformance, WrongShapesGiveAnErrorAndNoCrash) {
  const std::vector<Shape> shapes = {{},     {0},    {1},    {3},       {2, 3},
                                     {3, 2}, {0, 3}, {2, 0}, {1, 2, 3}, {2, 2, 2, 2}};
  for (const OpRegistration* op : AllOps().All()) {
    for (const OpExample& example : op->examples) {
      const AttributeMap attrs = TypeChoices(*op, example)[0];
      const std::vector<Tensor> good = SampleInputs(*op, example, attrs, 3);
      for (size_t i = 0; i < good.size(); ++i) {
        for (const Shape& shape : shapes) {
          std::vector<Tensor> inputs = good;
          if (!IsPlain(good[i].dtype()) && good[i].dtype() != DType::kString) continue;
          inputs[i] = Sample(good[i].dtype(), shape, -2, 3, 5);
          SCOPED_TRACE(StrCat(op->schema.name, " input ", i, " ", shape.ToString()));
          const OpResult result = RunOp(op->schema.name, inputs, attrs, /*hide_inputs=*/true);
          if (result.status.ok()) CheckResult(*op, result);
          EXPECT_NE(result.status.code(), StatusCode::kInternal) << result.status;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tenon::testing
