// SPDX-License-Identifier: Apache-2.0
#include "core/op/function_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/graph.h"
#include "core/op/op_registry.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using tenon::testing::IsError;
using tenon::testing::kInvalid;
using ::testing::ElementsAre;

constexpr const char* kOps = R"(
op Const() -> output: dtype [constant]
  value: tensor, dtype: type
op Placeholder() -> output: dtype [placeholder]
  dtype: type
op Repeat(x: float [n], times: Host(int32) [], sizes: Host(int64)) -> y: float [n, times, last]
  last: int = 2
op Sum(values: N * float [n], rest: int32) -> y: float [n]
  N: int >= 1
op Crop(image: float [..., h, w], size: Host(int32) [2]) -> y: float [..., size[0], size[1]])";

struct Seen : KernelState {
  explicit Seen(const KernelConstruction& c) : name(c.name()) {}
  std::string name;
};

Status RepeatKernel(KernelContext& ctx, const Tensor& x, Integer times, const DimVector& sizes,
                    int64_t last, const Seen& seen) {
  const std::string text = StrCat(seen.name, " ", x.num_elements(), " ", times.value, " [",
                                  Join(sizes, ","), "] ", last);
  return ctx.Return(Tensor::Scalar(TString(text)));
}

Status SumKernel(KernelContext&, InputList values, Integer rest, Tensor* y) {
  for (int64_t i = 0; i < y->num_elements(); ++i) {
    y->data<float>()[i] = static_cast<float>(rest);
    for (int k = 0; k < values.size(); ++k) y->data<float>()[i] += values[k].data<float>()[i];
  }
  return OkStatus();
}

class FunctionKernelTest : public ::testing::Test {
 protected:
  FunctionKernelTest() {
    ops_.Declare(kOps, "function_kernel_test.ops");
    ops_.Get("Const").Shape([](ShapeContext& c) -> Status {
      TENON_ASSIGN_OR_RETURN(const Tensor value, c.Attr<Tensor>("value"));
      return c.Return(value.shape());
    });
    ops_.Add("Repeat", RepeatKernel, {.attrs = {"last"}});
    ops_.Add("Sum", SumKernel);
    ops_.Get("Crop").Shape(DeclaredShape);
  }

  /// Runs the kernel of a node on these inputs; its first output.
  StatusOr<Tensor> Run(std::string_view op, const std::vector<Tensor>& inputs, AttributeMap attrs) {
    const OpRegistration& registration = *ops_.Find(op);
    TENON_RETURN_IF_ERROR(ApplySchema(registration.schema, &attrs));
    TENON_ASSIGN_OR_RETURN(const DTypeVector in_types, ArgTypes(registration.schema.inputs, attrs));
    TENON_ASSIGN_OR_RETURN(const DTypeVector types, ArgTypes(registration.schema.outputs, attrs));
    KernelConstruction construction("node", std::string(op), attrs, in_types, types,
                                    testing::TestDevice());
    TENON_ASSIGN_OR_RETURN(const auto kernel, registration.MakeKernel(construction));
    ResourceStore resources;
    const ProgramRun run{.resources = &resources};
    const DeviceRun on_device{run, testing::TestDevice(), 1};
    std::vector<Value> in(inputs.size()), out(types.size());
    for (size_t i = 0; i < inputs.size(); ++i) in[i].tensor = inputs[i];
    KernelContext ctx(on_device, types, in.data(), static_cast<int>(in.size()), out.data());
    TENON_RETURN_IF_ERROR(kernel->Compute(ctx));
    return out[0].tensor;
  }

  /// The shape that is inferred for output 0 of Crop.
  StatusOr<PartialShape> CropShape(const Tensor* image, const Tensor* size) {
    Graph graph(ops_);
    std::vector<Endpoint> sources;
    for (const Tensor* t : {image, size}) {
      const DType type = sources.empty() ? DType::kFloat : DType::kInt32;
      const std::string name = StrCat("in", sources.size());
      TENON_ASSIGN_OR_RETURN(
          Node * node, t == nullptr
                           ? graph.AddNode(name, "Placeholder", {{"dtype", type}}, {})
                           : graph.AddNode(name, "Const", {{"dtype", type}, {"value", *t}}, {}));
      sources.push_back({node, 0});
    }
    TENON_ASSIGN_OR_RETURN(Node * crop, graph.AddNode("crop", "Crop", {}, sources));
    return crop->output_shape(0);
  }

  OpRegistry ops_;
};

TEST_F(FunctionKernelTest, ParametersAreBoundByTheirTypes) {
  const auto text = Run("Repeat",
                        {Tensor::Vector<float>({1, 2, 3}), Tensor::Scalar<int32_t>(7),
                         Tensor::Vector<int64_t>({4, 5})},
                        {{"last", int64_t{9}}});
  ASSERT_OK(text);
  EXPECT_EQ(text->scalar<TString>(), "node 3 7 [4,5] 9");
}

TEST_F(FunctionKernelTest, WhatCannotBeReadIsNamedAsItIsDeclared) {
  const Tensor x = Tensor::Vector<float>({1}), times = Tensor::Scalar<int32_t>(1),
               sizes = Tensor::Vector<int64_t>({1});
  EXPECT_THAT(Run("Repeat", {x, sizes, sizes}, {}),
              IsError(kInvalid, "times must have shape [], found shape [1]"));
  EXPECT_THAT(Run("Repeat", {x, times, times}, {}),
              IsError(kInvalid, "sizes must be a vector, found shape []"));
  EXPECT_THAT(Run("Repeat", {times, times, sizes}, {}),
              IsError(kInvalid, "x must have shape [n], found shape []"));
}

TEST_F(FunctionKernelTest, AListOfTensorsAndAnOutputInItsDeclaredShape) {
  const Tensor a = Tensor::Vector<float>({1, 2}), b = Tensor::Vector<float>({10, 20}),
               rest = Tensor::Scalar<int32_t>(100);
  const auto sum = Run("Sum", {a, b, rest}, {{"N", int64_t{2}}});
  ASSERT_OK(sum);
  EXPECT_THAT(sum->flat<float>(), ElementsAre(111, 122));
  EXPECT_THAT(Run("Sum", {a, Tensor::Vector<float>({1}), rest}, {{"N", int64_t{2}}}),
              IsError(kInvalid, "values[1] must have shape [n], where n = 2, found shape [1]"));
}

TEST_F(FunctionKernelTest, DeclaredShapesAreInferredAsFarAsInputsTell) {
  const Tensor image = Tensor::Zeros(DType::kFloat, {5, 3, 4}),
               size = Tensor::Vector<int32_t>({2, 6});
  const Tensor flat = Tensor::Vector<float>({1});
  EXPECT_EQ(CropShape(&image, &size)->ToString(), "[5,2,6]");
  EXPECT_EQ(CropShape(&image, nullptr)->ToString(), "[5,?,?]");
  EXPECT_EQ(CropShape(nullptr, &size)->ToString(), "<unknown>");
  EXPECT_THAT(CropShape(&flat, &size), IsError(kInvalid, "image must have shape [..., h, w]"));
}

}  // namespace
}  // namespace tenon
