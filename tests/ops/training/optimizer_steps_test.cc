// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "core/base/interruption.h"
#include "ops/array/constants.h"
#include "ops/state/state_ops.h"
#include "ops/training/training_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/optimizer_step.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

constexpr const char* kPrefixes[] = {"Apply", "ResourceApply", "SparseApply",
                                     "ResourceSparseApply"};

const Optimizer& Named(const std::string& name) {
  return *std::find_if(Optimizers().begin(), Optimizers().end(),
                       [&](const Optimizer& o) { return o.name == name; });
}

void ExpectNear(const std::vector<Elements>& got, const std::vector<Elements>& wanted,
                double tolerance) {
  for (size_t k = 0; k < wanted.size(); ++k) {
    ASSERT_EQ(got[k].size(), wanted[k].size());
    for (size_t i = 0; i < wanted[k].size(); ++i) {
      ASSERT_NEAR(got[k][i], wanted[k][i], tolerance * (1 + std::fabs(wanted[k][i])))
          << "variable " << k << ", element " << i;
    }
  }
}

TEST(OptimizerSteps, EveryOpFollowsItsFormula) {
  int num_ops = 0;
  for (const Optimizer& optimizer : Optimizers()) {
    for (const char* prefix : kPrefixes) {
      for (const Shape& shape : {Shape{6}, Shape{5, 3}, Shape{4, 1, 2, 5}}) {
        for (const bool flag : {false, true}) {
          OptimizerStep step(optimizer, prefix, shape);
          if (!step.is_declared()) continue;
          SCOPED_TRACE(StrCat(step.op, shape.ToString(), optimizer.flag, flag));
          step.flag = flag;
          // One row twice, one not at all.
          if (step.is_sparse()) step.SetRows({3, 0, 3, 2});
          const std::vector<Elements> wanted = step.Expected(2);
          ASSERT_OK(step.Run(2));
          ExpectNear(step.variables, wanted, 1e-12);
          num_ops += flag && shape.rank() == 1;
        }
      }
    }
  }
  EXPECT_EQ(num_ops, 57 + 4);  // Ftrl is there twice
}

TEST(OptimizerSteps, EveryDTypeFollowsTheFormula) {
  for (const Optimizer& optimizer : Optimizers()) {
    for (const char* prefix : kPrefixes) {
      OptimizerStep first(optimizer, prefix, {33});
      if (!first.is_declared()) continue;
      for (const DType dtype : AllOps().Find(first.op)->kernels[0].options.types[0].second) {
        if (dtype == DType::kComplex64 || dtype == DType::kComplex128) continue;
        SCOPED_TRACE(StrCat(first.op, " ", dtype));
        OptimizerStep step(optimizer, prefix, {33});
        step.dtype = dtype;
        if (step.is_sparse()) step.SetRows({31, 2, 16});
        const std::vector<Elements> wanted = step.Expected(1);
        ASSERT_OK(step.Run(1));
        ExpectNear(step.variables, wanted,
                   dtype == DType::kBFloat16 ? .03
                   : dtype == DType::kHalf   ? .004
                                             : 1e-5);
      }
    }
  }
}

TEST(OptimizerSteps, ASparseStepOverEveryRowIsTheDenseOne) {
  for (const Optimizer& optimizer : Optimizers()) {
    OptimizerStep dense(optimizer, "ResourceApply", {40, 3}),
        sparse(optimizer, "ResourceSparseApply", {40, 3});
    if (!sparse.is_declared()) continue;
    SCOPED_TRACE(optimizer.name);
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < 40; ++i) rows.push_back(i * 7 % 40);
    sparse.SetRows(rows);
    for (size_t i = 0; i < rows.size(); ++i) {
      for (int64_t j = 0; j < 3; ++j) {
        dense.gradient.data<double>()[rows[i] * 3 + j] =
            sparse.gradient.data<double>()[static_cast<int64_t>(i) * 3 + j];
      }
    }
    ASSERT_OK(dense.Run(1));
    ASSERT_OK(sparse.Run(1));
    ExpectNear(sparse.variables, dense.variables, 1e-12);
  }
}

TEST(OptimizerSteps, ManyRowsOfWhichSomeComeOftenKeepTheirOrder) {
  for (const Shape& shape : {Shape{3000, 16}, Shape{3000}}) {
    OptimizerStep step(Named("Momentum"), "SparseApply", shape);
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < 100000; ++i) rows.push_back(i % 3 == 0 ? 17 : i * i % 3000);
    step.SetRows(rows);
    const std::vector<Elements> wanted = step.Expected(1);
    ASSERT_OK(step.Run(1));
    ExpectNear(step.variables, wanted, 1e-12);
  }
}

TEST(OptimizerSteps, ALargeDenseStepIsWhole) {
  OptimizerStep step(Named("Adam"), "Apply", {1000003});
  const std::vector<Elements> wanted = step.Expected(1);
  ASSERT_OK(step.Run(1));
  ExpectNear(step.variables, wanted, 1e-12);
}

TEST(OptimizerSteps, AStepThatIsInterruptedIsWhole) {
  const Shape shape{20000000};
  const auto handle =
      RunOpOrDie("VarHandleOp", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape(shape)}});
  Tensor ones(DType::kFloat, shape);
  std::fill_n(ones.data<float>(), shape.num_elements(), 1.0f);
  ASSERT_OK(RunOp("AssignVariableOp", {handle, ones}).status);
  Cancellation cancellation;
  cancellation.Cancel(Cancelled("enough"));
  {
    const InterruptibleBy step(&cancellation);
    ASSERT_OK(RunOp("ResourceApplyGradientDescent", {handle, Tensor::Scalar(0.5f), ones}).status);
  }
  const Tensor value = RunOpOrDie("ReadVariableOp", {handle}, {{"dtype", DType::kFloat}});
  for (const float x : value.flat<float>()) ASSERT_EQ(x, 0.5f);
}

TEST(OptimizerSteps, NoRowsAndNoElementsAreNothingToDo) {
  for (const char* prefix : kPrefixes) {
    for (const Shape& shape : {Shape{3, 2}, Shape{0, 2}, Shape{0}}) {
      OptimizerStep step(Named("Momentum"), prefix, shape);
      if (step.is_sparse()) {
        step.SetRows({});
      } else if (shape.num_elements() > 0) {
        continue;
      }
      const std::vector<Elements> before = step.variables;
      ASSERT_OK(step.Run(1));
      EXPECT_EQ(step.variables, before);
    }
  }
}

/// The step is an error with that text, and no variable changes.
void ExpectRefused(OptimizerStep step, std::string_view text,
                   StatusCode code = StatusCode::kInvalidArgument) {
  SCOPED_TRACE(step.op);
  const std::vector<Elements> before = step.variables;
  EXPECT_THAT(step.Run(1), IsError(code, text));
  EXPECT_EQ(step.variables, before);
}

TEST(OptimizerSteps, WrongInputsAreErrorsAndChangeNothing) {
  for (const Optimizer& optimizer : Optimizers()) {
    for (const char* prefix : kPrefixes) {
      OptimizerStep step(optimizer, prefix, {4, 2});
      if (!step.is_declared()) continue;
      if (step.is_sparse()) step.SetRows({1, 3, 2});
      for (const auto& [name, value] : optimizer.scalars) {
        if (name == "global_step") continue;
        OptimizerStep wrong = step;
        wrong.not_scalar = name;
        ExpectRefused(wrong, StrCat(name, " is not a scalar: [2]"));
      }
      OptimizerStep wrong = step;
      wrong.gradient = DoubleTensor({4, 3}, Elements(12));
      ExpectRefused(wrong, step.is_sparse()
                               ? "grad is [4,3], wanted a row of var, which is [4,2], for "
                                 "each of 3 indices"
                               : "do not have the same shape: [4,2] and [4,3]");
      OptimizerStep missing = step;
      const OpSchema& schema = AllOps().Find(step.op)->schema;
      missing.uninitialized = schema.inputs[optimizer.start.size() - 1].name;
      ExpectRefused(missing, missing.uninitialized, StatusCode::kFailedPrecondition);
      if (!step.is_sparse()) continue;
      wrong = step;
      wrong.SetRows({1, 3, 4});
      ExpectRefused(wrong, "Index 4 at offset 2 in indices is out of range: var has 4 rows");
      wrong.SetRows({1, -1});
      ExpectRefused(wrong, "Index -1 at offset 1 in indices is out of range");
      wrong.indices = Tensor::Of<int32_t>({1, 2}, {0, 1});
      ExpectRefused(wrong, "indices must be one-dimensional");
      wrong = OptimizerStep(optimizer, prefix, {});
      wrong.indices = Tensor::Vector<int32_t>({0});
      ExpectRefused(wrong, "var must be at least 1 dimensional");
    }
  }
}

TEST(OptimizerSteps, ScalarsOutOfBoundsAreErrors) {
  const auto expect = [](const char* prefix, const char* name, const std::string& scalar,
                         double value, std::string_view wanted, bool flag = false) {
    OptimizerStep step(Named(name), prefix, {4, 2});
    if (step.is_sparse()) step.SetRows({1, 3, 2});
    step.scalars[scalar] = value;
    step.flag = flag;
    if (!wanted.empty())
      return ExpectRefused(step, StrCat(scalar, " is ", value, ", wanted ", wanted));
    EXPECT_OK(step.Run(1)) << step.op << " " << scalar;
  };
  for (const char* prefix : kPrefixes) {
    expect(prefix, "ProximalAdagrad", "lr", 0, "above 0");
    expect(prefix, "ProximalAdagrad", "lr", std::nan(""), "above 0");
    expect(prefix, "ProximalAdagrad", "l1", -1, "at least 0");
    expect(prefix, "ProximalAdagrad", "l2", -1, "at least 0");
    expect(prefix, "ProximalGradientDescent", "l1", -1, "");
    const bool sparse = std::string_view(prefix).find("Sparse") != std::string_view::npos;
    for (const char* name : {"Ftrl", "FtrlV2"}) {
      expect(prefix, name, "lr", 0, sparse ? "above 0" : "");
      expect(prefix, name, "lr", 0, "", true);
      expect(prefix, name, "lr", -1, sparse ? "at least 0" : "", true);
      expect(prefix, name, "l1", -1, sparse ? "at least 0" : "");
      expect(prefix, name, "l2", -1, sparse ? "at least 0" : "");
      expect(prefix, name, "lr_power", .5, sparse ? "at most 0" : "");
    }
    expect(prefix, "FtrlV2", "l2_shrinkage", -1, sparse ? "at least 0" : "");
  }
}

TEST(OptimizerSteps, RowsWithoutElementsAreErrorsWhereTensorFlowsAre) {
  for (const Optimizer& optimizer : Optimizers()) {
    OptimizerStep step(optimizer, "SparseApply", {3, 0});
    if (!step.is_declared()) continue;
    step.SetRows({1});
    const std::string& name = optimizer.name;
    if (name == "Adadelta" || name == "Momentum" || name == "RMSProp" ||
        name == "CenteredRMSProp") {
      EXPECT_OK(step.Run(1)) << name;
    } else {
      ExpectRefused(step, "the rows of var have no elements: [3,0]");
    }
  }
}

// TensorFlow 2.15's special cases, with its results.
TEST(OptimizerSteps, FtrlOfNothingIsZeroWhenDenseAndNaNWhenSparse) {
  for (const char* prefix : kPrefixes) {
    OptimizerStep step(Named("Ftrl"), prefix, {2});
    if (step.is_sparse()) step.SetRows({0, 1});
    step.variables = {{1, 2}, {0, 0}, {0, 0}};
    step.gradient = DoubleTensor({2}, {0, 0});
    step.scalars["l1"] = step.scalars["l2"] = 0;
    ASSERT_OK(step.Run(1));
    for (const double x : step.variables[0]) EXPECT_TRUE(step.is_sparse() ? std::isnan(x) : x == 0);
  }
}

TEST(OptimizerSteps, AdagradDAOfStepZeroIsNaNInRowsOfSeveralElements) {
  for (const Shape& shape : {Shape{2}, Shape{2, 2}}) {
    OptimizerStep step(Named("AdagradDA"), "SparseApply", shape);
    step.SetRows({0, 1});
    step.scalars["global_step"] = 0;
    ASSERT_OK(step.Run(1));
    for (const double x : step.variables[0]) EXPECT_EQ(std::isnan(x), shape.rank() == 2);
  }
}

TEST(OptimizerSteps, OneVariableMayBeGivenTwice) {
  const auto run = [](const char* prefix) {
    OptimizerStep step(Named("Momentum"), prefix, {3});
    step.variables = {{1, 2, 4}, {}};
    step.same = {0, 0};
    step.scalars = {{"lr", .5}, {"momentum", .25}};
    if (step.is_sparse()) step.SetRows({0, 1, 2});
    step.gradient = DoubleTensor({3}, {1, -1, 2});
    EXPECT_OK(step.Run(1));
    return step.variables[0];
  };
  // x = .25 * x + g; x -= .5 * x
  EXPECT_THAT(run("Apply"), ElementsAre(.625, -.25, 1.5));
  EXPECT_THAT(run("SparseApply"), ElementsAre(.625, -.25, 1.5));
  EXPECT_THAT(run("ResourceSparseApply"), ElementsAre(.625, -.25, 1.5));
  // The resource is copied for each argument, and the last one's value stays.
  EXPECT_THAT(run("ResourceApply"), ElementsAre(1.25, -.5, 3));
}

TEST(OptimizerSteps, ASparseStepLeavesTheValueOfAReaderAndElseWorksInPlace) {
  GraphSession s;
  const Output v = VariableV2({3, 2}, DType::kFloat), accum = VariableV2({3, 2}, DType::kFloat);
  const Output ones = Const(Tensor::Of<float>({3, 2}, {1, 1, 1, 1, 1, 1}));
  ASSERT_OK(s.Run({}, {Assign(v, ones), Assign(accum, ones)}));
  const Output step = SparseApplyMomentum(v, accum, 0.5f, Const(Tensor::Of<float>({1, 2}, {1, 1})),
                                          Const({1}), 0.0f);
  ASSERT_OK(s.Run({}, {step}));
  const Tensor read = s.Value(v);
  EXPECT_THAT(Numbers(read), ElementsAre(1, 1, .5, .5, 1, 1));
  ASSERT_OK(s.Run({}, {step}));
  EXPECT_THAT(Numbers(read), ElementsAre(1, 1, .5, .5, 1, 1));
  EXPECT_THAT(Numbers(s.Value(v)), ElementsAre(1, 1, 0, 0, 1, 1));
  const void* const before = s.Value(v).raw_data();
  ASSERT_OK(s.Run({}, {step}));
  EXPECT_EQ(s.Value(v).raw_data(), before);
}

}  // namespace
}  // namespace tenon::testing
