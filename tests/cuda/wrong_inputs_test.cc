// SPDX-License-Identifier: Apache-2.0
//
// What a kernel finds wrong while it runs on the GPU is the CPU's error, as far as it notes it, and
// a step's end; the GPU and the session go on.
#include "ops/array/array_basic_ops.h"
#include "ops/array/array_ops.h"
#include "ops/math/math_ops.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "ops/training/training_ops.h"
#include "tests/cuda/gpu_test.h"
#include "tests/cuda/op_case.h"
#include "tests/testing/op_runner.h"

namespace tenon::testing {
namespace {

Tensor Floats(const Shape& shape) { return Sample(DType::kFloat, shape, -2, 2, 7); }

struct WrongInput {
  std::string op;
  std::vector<Tensor> inputs;
  AttributeMap attrs = {};
  /// What the CPU's message has, and a GPU's in its place: of several numbers a kernel notes the
  /// one that is to blame.
  std::string_view of_cpu = {}, of_gpu = {};
};

std::vector<WrongInput> WrongInputs() {
  const Tensor infinite = Tensor::Of<float>({3}, {1, HUGE_VALF, 0}),
               nan = Tensor::Of<float>({3}, {0, 1, NAN});
  return {
      {"Gather", {Floats({5, 3}), Tensor::Of<int32_t>({3}, {0, 5, 1})}},
      {"Gather", {Floats({5, 3}), Tensor::Of<int64_t>({1}, {-1})}},
      {"GatherV2",
       {Floats({5, 3}), Tensor::Of<int32_t>({2, 2}, {0, 1, 2, 9}), Tensor::Scalar(int32_t{1})}},
      {"GatherNd",
       {Floats({5, 3}), Tensor::Of<int32_t>({2, 2}, {0, 0, 4, 3})},
       {},
       "[4, 3]",
       "[..., 3, ...]"},
      {"ScatterNd",
       {Tensor::Of<int32_t>({2, 1}, {1, 7}), Floats({2}), Tensor::Of<int32_t>({1}, {4})}},
      {"TensorScatterAdd", {Floats({4, 2}), Tensor::Of<int32_t>({2, 1}, {1, 7}), Floats({2, 2})}},
      {"TensorScatterUpdate", {Floats({4}), Tensor::Of<int64_t>({2, 1}, {-1, 2}), Floats({2})}},
      {"TensorScatterMax", {Floats({4}), Tensor::Of<int32_t>({0, 1}, {}), Floats({2})}},
      {"Roll", {Floats({4, 2}), Tensor::Scalar(1), Tensor::Scalar(2)}},
      {"MatrixBandPart", {Floats({2, 3}), Tensor::Scalar(int64_t{3}), Tensor::Scalar(int64_t{1})}},
      {"MatrixDiagPartV3", {Floats({2, 3}), Tensor::Scalar(int32_t{5}), Tensor::Scalar(0.0f)}},
      {"MatrixSetDiag", {Floats({2, 3}), Floats({3})}},
      {"MirrorPadGrad",
       {Floats({3}), Tensor::Of<int32_t>({1, 2}, {1, 2})},
       {{"mode", std::string("REFLECT")}}},
      {"Betainc", {Floats({2}), Floats({3}), Floats({2})}},
      {"SparseSoftmaxCrossEntropyWithLogits",
       {Floats({3, 4}), Tensor::Of<int32_t>({3}, {0, 4, 1})},
       {},
       "  Label values: 0 4 1",
       ""},
      {"SparseSoftmaxCrossEntropyWithLogits",
       {Floats({3, 4}), Tensor::Of<int64_t>({3}, {0, -1, 1})},
       {},
       "  Label values: 0 -1 1",
       ""},
      {"CheckNumerics", {infinite}, {{"message", std::string("the weights")}}},
      {"CheckNumerics", {nan}, {{"message", std::string("the weights")}}},
      {"CheckNumericsV2", {infinite}, {{"message", std::string("the weights")}}},
      {"UnsortedSegmentSum",
       {Floats({4, 2}), Tensor::Of<int32_t>({4}, {0, 1, 3, 0}), Tensor::Scalar(int32_t{3})}},
      {"SegmentSum", {Floats({3, 2}), Tensor::Of<int32_t>({3}, {0, 2, 1})}},
      {"SegmentSum", {Floats({3, 2}), Tensor::Of<int32_t>({3}, {-1, 0, 1})}},
      {"DynamicPartition",
       {Floats({3}), Tensor::Of<int32_t>({3}, {0, 2, 1})},
       {{"num_partitions", int64_t{2}}}},
      {"DynamicStitch", {Tensor::Of<int32_t>({2}, {0, -3}), Floats({2, 2})}},
      {"FloorDiv", {Tensor::Of<int64_t>({2}, {5, 7}), Tensor::Of<int64_t>({2}, {2, 0})}},
      {"FloorMod", {Tensor::Of<int64_t>({2}, {5, 7}), Tensor::Of<int64_t>({2}, {2, 0})}},
  };
}

/// The CPU's message as a device has it that says the same, and as one that notes a number.
struct DeviceMessages {
  std::string whole, noted;
};
DeviceMessages OnGpu(std::string text, const WrongInput& wrong) {
  for (size_t at; (at = text.find("device:CPU:")) != std::string::npos;) {
    text.replace(at, 11, "device:GPU:");
  }
  DeviceMessages messages{text, text};
  const size_t at = text.find(wrong.of_cpu);
  if (at != std::string::npos) messages.noted.replace(at, wrong.of_cpu.size(), wrong.of_gpu);
  return messages;
}

/// Whether both give the same error; the row is written then.
bool CompareErrors(const WrongInput& wrong) {
  OpRow row(StrCat(wrong.op, ", wrong inputs"));
  const OpCase c{AllOps().Find(wrong.op), wrong.inputs, wrong.attrs};
  const auto on_cpu = RunCase(c, false), found = RunCase(c, true);
  const auto [whole, noted] = OnGpu(on_cpu.status().ToString(), wrong);
  const std::string message = found.status().ToString();
  if (on_cpu.ok()) {
    row.Fail("the CPU takes it");
  } else if (found.ok()) {
    row.Fail(StrCat("found no error, wanted ", noted));
  } else if (message != whole && message != noted) {
    row.Fail(StrCat("found ", message, ", wanted ", noted));
  } else {
    row.AddCase(wrong.inputs[0].dtype(), 0);
  }
  return !row.failed();
}

class GpuWrongInputsTest : public GpuTest {};

TEST_F(GpuWrongInputsTest, TheErrorsAreTheCpusWordForWord) {
  for (const WrongInput& wrong : WrongInputs()) {
    if (!CompareErrors(wrong) && !GpuIsThere()) return;
  }
}

TEST_F(GpuWrongInputsTest, ASessionGoesOnAfterAnError) {
  OpRow row("a session after errors");
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Output values = Placeholder(DType::kFloat, {4, 2}, {.name = "values"});
  const Output rows = Placeholder(DType::kInt32, {-1}, {.name = "rows"});
  Output checked;
  {
    const DeviceScope on(kGpuName);
    checked = Mul(CheckNumerics(Gather(values, rows), "values"), 2.0f);
  }
  ASSERT_TRUE(graph.error().ok()) << graph.error();
  const auto session = GpuSession(graph);
  ASSERT_TRUE(session.ok()) << session.status();
  const Tensor good = Tensor::Of<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor bad = Tensor::Of<float>({4, 2}, {1, 2, 3, NAN, 5, 6, 7, 8});
  for (int i = 0; i < 20; ++i) {
    const auto outside =
        (*session)->Run({{values, good}, {rows, Tensor::Vector({3, 4})}}, {checked});
    if (outside.ok()) row.Fail("a row that is not there is no error");
    const auto numerics =
        (*session)->Run({{values, bad}, {rows, Tensor::Vector({3, 1})}}, {checked});
    if (numerics.ok()) row.Fail("a NaN is no error");
    const auto result =
        (*session)->Run({{values, good}, {rows, Tensor::Vector({3, 1})}}, {checked});
    if (!result.ok()) return row.Fail(result.status().ToString());
    if (!(*result)[0].Equals(Tensor::Of<float>({2, 2}, {14, 16, 6, 8}))) {
      return row.Fail(StrCat("found ", (*result)[0].ToString(), ", wanted 14 16 6 8"));
    }
    row.AddCase(DType::kFloat, 0);
  }
}

/// Something that changes a variable of four numbers.
struct VariableChange {
  std::string name;
  std::function<const Node*(const Output& variable, const Output& value)> build;
  bool by_handle = false;
  DType dtype = DType::kFloat;
};

/// Changes by a value that is wrong.
std::vector<VariableChange> ChangesByValue() {
  using V = const Output&;
  const auto half = [](V x) { return Slice(x, {0}, {2}); };
  return {
      {"Assign", [](V v, V x) { return Assign(v, x).node; }},
      {"AssignAdd", [](V v, V x) { return AssignAdd(v, x).node; }},
      {"AssignVariableOp", [](V v, V x) { return AssignVariableOp(v, x); }, true},
      {"AssignSubVariableOp", [](V v, V x) { return AssignSubVariableOp(v, x); }, true},
      {"ApplyGradientDescent", [](V v, V x) { return ApplyGradientDescent(v, 0.5f, x).node; }},
      {"ApplyMomentum", [](V v, V x) { return ApplyMomentum(v, v, 0.5f, x, 0.5f).node; }},
      {"ResourceApplyGradientDescent",
       [](V v, V x) { return ResourceApplyGradientDescent(v, 0.5f, x); }, true},
      {"SparseApplyAdagrad",
       [=](V v, V x) {
         return SparseApplyAdagrad(v, v, 0.5f, half(x), Const({2, 1})).node;
       }},
      {"ScatterUpdate",
       [=](V v, V x) {
         return ScatterUpdate(v, Const({2, 1}), half(x)).node;
       }},
      {"ScatterAdd",
       [=](V v, V x) {
         return ScatterAdd(v, Const({2, 1}), half(x)).node;
       }},
      {"ResourceScatterMul",
       [=](V v, V x) {
         return ResourceScatterMul(v, Const({2, 1}), half(x));
       },
       true},
      {"ScatterNdSub",
       [=](V v, V x) {
         return ScatterNdSub(v, Reshape(Const({2, 1}), {2, 1}), half(x)).node;
       }},
  };
}

/// Changes that find themselves what is wrong.
std::vector<VariableChange> WrongChanges() {
  using V = const Output&;
  return {
      {"ScatterAdd of no row",
       [](V v, V) {
         return ScatterAdd(v, Const({1, 4}), Const({5.0f, 6.0f})).node;
       }},
      {"SparseApplyAdagrad of no row",
       [](V v, V) {
         return SparseApplyAdagrad(v, v, 0.5f, Const({5.0f, 6.0f}), Const({1, 4})).node;
       }},
      {"SparseApplyProximalAdagrad backwards",
       [](V v, V) {
         return SparseApplyProximalAdagrad(v, v, -1.0f, 0.5f, 0.5f, Const({5.0f}), Const({1})).node;
       }},
      {"ResourceScatterDiv by 0",
       [](V v, V) {
         return ResourceScatterDiv(v, Const({1, 2}), Const({2, 0}));
       },
       true, DType::kInt32},
  };
}

/// Changes a variable in a step that fails, while its memory is its own and while it is not.
void CheckThatItKeepsItsValue(const VariableChange& change) {
  OpRow row(StrCat(change.name, " in a failing step"));
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Output x = Placeholder(DType::kFloat, {4}, {.name = "x"});
  const Tensor wrong = Tensor::Of<float>({4}, {5, HUGE_VALF, 7, 8});
  const Tensor start = change.dtype == DType::kFloat ? Tensor::Of<float>({4}, {1, 2, 3, 4})
                                                     : Tensor::Of<int32_t>({4}, {1, 2, 3, 4});
  Output read;
  const Node *init, *share, *changed;
  {
    const DeviceScope on(kGpuName);
    const Output checked = CheckNumerics(x, "x");
    const Output other = VariableV2({4}, change.dtype, {.name = "other"});
    Output v;
    if (change.by_handle) {
      v = VarHandleOp(change.dtype, {4}, {.name = "v"});
      init = AssignVariableOp(v, Const(start));
      read = ReadVariableOp(v, change.dtype);
    } else {
      v = VariableV2({4}, change.dtype, {.name = "v"});
      init = Assign(v, Const(start)).node;
      read = Identity(v);
    }
    share = Assign(other, read).node;
    changed = change.build(v, checked);
  }
  ASSERT_TRUE(graph.error().ok()) << graph.error();
  const auto session = GpuSession(graph);
  ASSERT_TRUE(session.ok()) << session.status();
  for (const Node* before : {init, share}) {
    const auto prepared = (*session)->Run({}, {}, {before->name()});
    if (!prepared.ok()) return row.Fail(prepared.status().ToString());
    if ((*session)->Run({{x, wrong}}, {}, {changed->name()}).ok()) row.Fail("found no error");
    const auto value = (*session)->Run({}, {read});
    if (!value.ok()) return row.Fail(value.status().ToString());
    if (!(*value)[0].Equals(start)) {
      return row.Fail(StrCat("found ", (*value)[0].ToString(), ", wanted 1 2 3 4"));
    }
    row.AddCase(change.dtype, 0);
  }
}

TEST_F(GpuWrongInputsTest, VariablesKeepTheirValuesWhenTheStepFails) {
  for (const auto& changes : {ChangesByValue(), WrongChanges()}) {
    for (const VariableChange& change : changes) {
      CheckThatItKeepsItsValue(change);
      if (!GpuIsThere()) return;
    }
  }
}

}  // namespace
}  // namespace tenon::testing
