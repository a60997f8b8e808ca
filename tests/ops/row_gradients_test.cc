// SPDX-License-Identifier: Apache-2.0
// Gradients of rows in branches and loops: they are those of the same rows picked by a product with
// a matrix of ones and zeros, whose gradient is dense, and never become the whole table on the way.
#include <gmock/gmock.h>

#include <functional>

#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/flow.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/state/state_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using Values = std::vector<Output>;
/// Rows of the table, by ids of rank 1.
using Rows = std::function<Output(const Output& ids)>;
/// A loss of such rows, and of what is fed.
using Loss = std::function<Output(const Rows& rows, const Output& fed)>;

constexpr int kRows = 6, kWidth = 2;

Tensor Table() {
  Tensor table(DType::kDouble, Shape({kRows, kWidth}));
  for (int i = 0; i < kRows * kWidth; ++i) table.data<double>()[i] = 0.5 + 0.25 * i;
  return table;
}

/// What the table is: a tensor, or a variable of either kind, initialized by the node.
struct TableNodes {
  Output x;
  Output value;
  Output initializer;
};
TableNodes MakeTable(const std::string& kind) {
  if (kind == "tensor") {
    const Output x = Const(Table(), {.name = "table"});
    return {x, x, Identity(x)};
  }
  if (kind == "ref") {
    const Output x = VariableV2(Shape({kRows, kWidth}), DType::kDouble);
    return {x, Identity(x), Assign(x, Const(Table()))};
  }
  const Output x = VarHandleOp(DType::kDouble, Shape({kRows, kWidth}));
  return {x, ReadVariableOp(x, DType::kDouble), AssignVariableOp(x, Const(Table()))};
}

class RowGradientsTest : public ::testing::TestWithParam<const char*> {
 protected:
  /// Compares the gradients; the number of rows that came.
  void Check(const Loss& loss, const Tensor& given, int64_t rows) {
    GraphSession s;
    const TableNodes table = MakeTable(GetParam());
    const Output fed = Placeholder(given.dtype(), Shape(), {.name = "fed"});
    const Session::Feeds feeds = {{"fed", given}};
    const Output gathered = loss(
        [&](const Output& ids) {
          if (table.x.dtype() != DType::kResource) return GatherV2(table.x, ids, 0);
          return ResourceGather(table.x, ids, DType::kDouble);
        },
        fed);
    const Output product = loss(
        [&](const Output& ids) {
          return MatMul(OneHot(ids, kRows, Const(1.0, {.dtype = DType::kDouble}),
                               Const(0.0, {.dtype = DType::kDouble})),
                        table.value);
        },
        fed);
    const Gradient dx = SparseGradients(gathered, {table.x})[0];
    const Output dense = Gradients(product, {table.value})[0];
    ASSERT_OK(s.graph.error());
    ASSERT_TRUE(dx.is_sparse());
    if (table.x.dtype() != DType::kResource) {
      EXPECT_EQ(dx.ToDense().shape().dim(1), kWidth);
    }
    const Output again =
        Gradients(Sum(Square(dx.ToDense())), {table.x}, {.allow_unconnected = true})[0];
    const Output product_again =
        Gradients(Sum(Square(dense)), {table.value}, {.allow_unconnected = true})[0];
    ASSERT_OK(s.graph.error());
    ASSERT_OK(s.Run({}, {table.initializer}).status());
    auto values = s.Run({gathered, product, dx.ToDense(), dense, dx.slices.indices,
                         dx.slices.values, dx.slices.dense_shape},
                        {}, feeds);
    ASSERT_OK(values.status());
    EXPECT_EQ(Numbers((*values)[0]), Numbers((*values)[1]));
    EXPECT_THAT(Numbers((*values)[2]),
                ::testing::Pointwise(::testing::DoubleNear(1e-12), Numbers((*values)[3])));
    EXPECT_EQ((*values)[4].shape(), Shape({rows}));
    EXPECT_EQ((*values)[5].shape(), Shape({rows, kWidth}));
    EXPECT_THAT(Numbers((*values)[6]), ::testing::ElementsAre(kRows, kWidth));
    ASSERT_EQ(again.exists(), product_again.exists());
    if (!again.exists()) return;
    auto second = s.Run({again, product_again}, {}, feeds);
    ASSERT_OK(second.status());
    EXPECT_THAT(Numbers((*second)[0]),
                ::testing::Pointwise(::testing::DoubleNear(1e-12), Numbers((*second)[1])));
  }
};

Tensor FlagIs(bool taken) { return Tensor::Scalar(taken); }
Tensor CountIs(int32_t n) { return Tensor::Scalar(n); }
Output Zero() { return Const(0.0, {.dtype = DType::kDouble}); }
Output Cubes(const Output& x) { return Sum(x * x * x); }

TEST_P(RowGradientsTest, OneSideOfABranch) {
  const Loss loss = [](const Rows& rows, const Output& fed) {
    return Cond(
        fed,
        [&] {
          return Cubes(rows(Const({4, 1, 4})));
        },
        [] { return Zero(); });
  };
  Check(loss, FlagIs(true), 3);
  Check(loss, FlagIs(false), 0);
}

TEST_P(RowGradientsTest, BothSidesOfABranch) {
  const Loss loss = [](const Rows& rows, const Output& fed) {
    return Cond(
        fed,
        [&] {
          return Cubes(rows(Const({4, 1})));
        },
        [&] { return Cubes(rows(Const({2}, {.dtype = DType::kInt64}))); });
  };
  Check(loss, FlagIs(true), 2);
  Check(loss, FlagIs(false), 1);
}

TEST_P(RowGradientsTest, ABranchWithinABranchBesideRowsOutside) {
  const Loss loss = [](const Rows& rows, const Output& fed) {
    return Cubes(rows(Const({5}))) + Cond(
                                         fed, [&] { return Zero(); },
                                         [&] {
                                           return Cond(
                                               LogicalNot(fed),
                                               [&] { return Cubes(rows(Const({3}))); },
                                               [&] {
                                                 return Cubes(rows(Const({0, 1})));
                                               });
                                         });
  };
  Check(loss, FlagIs(true), 1);
  Check(loss, FlagIs(false), 2);
}

/// The rows of each iteration: i % 6 and, where `two`, 5 - i % 6.
Output LoopOver(const Rows& rows, const Output& n, bool two) {
  return WhileLoop(
      {0, Zero()}, [&](const Values& v) { return v[0] < n; },
      [&](const Values& v) -> Values {
        const Output id = Reshape(FloorMod(v[0], kRows), {1});
        const Output ids = two ? ConcatV2({id, 5 - id}, 0) : id;
        return {v[0] + 1, v[1] * 0.5 + Cubes(rows(ids))};
      })[1];
}

TEST_P(RowGradientsTest, ALoop) {
  for (const int n : {0, 1, 3, 8}) {
    Check([](const Rows& rows, const Output& fed) { return LoopOver(rows, fed, false); },
          CountIs(n), n);
  }
  Check([](const Rows& rows, const Output& fed) { return LoopOver(rows, fed, true); }, CountIs(4),
        8);
}

TEST_P(RowGradientsTest, OtherNumbersOfRowsInEachIteration) {
  const Loss loss = [](const Rows& rows, const Output& fed) {
    return WhileLoop(
        {0, Zero()}, [&](const Values& v) { return v[0] < fed; },
        [&](const Values& v) -> Values {
          return {v[0] + 1, v[1] + Cubes(rows(Range(0, v[0], 1)))};
        })[1];
  };
  Check(loss, CountIs(5), 0 + 1 + 2 + 3 + 4);
}

TEST_P(RowGradientsTest, ABranchWithinALoop) {
  const Loss loss = [](const Rows& rows, const Output& fed) {
    return WhileLoop(
        {0, Zero()}, [&](const Values& v) { return v[0] < fed; },
        [&](const Values& v) -> Values {
          const Output term = Cond(
              Equal(FloorMod(v[0], 2), 0), [&] { return Cubes(rows(Reshape(v[0], {1}))); },
              [] { return Zero(); });
          return {v[0] + 1, v[1] + term};
        })[1];
  };
  Check(loss, CountIs(6), 3);
  Check(loss, CountIs(1), 1);
}

TEST_P(RowGradientsTest, ALoopWithinALoop) {
  const Loss loss = [](const Rows& rows, const Output& fed) {
    return WhileLoop(
        {0, Zero()}, [&](const Values& v) { return v[0] < fed; },
        [&](const Values& v) -> Values {
          return {v[0] + 1, v[1] + LoopOver(rows, v[0], true)};
        })[1];
  };
  Check(loss, CountIs(4), 2 * (0 + 1 + 2 + 3));
}

TEST_P(RowGradientsTest, ALoopWithinABranch) {
  const Loss loss = [](const Rows& rows, const Output& fed) {
    return Cond(
        fed, [&] { return LoopOver(rows, Const(3), false); },
        [&] { return Cubes(rows(Const({2}))); });
  };
  Check(loss, FlagIs(true), 3);
  Check(loss, FlagIs(false), 1);
}

TEST_P(RowGradientsTest, TheTableGoesThroughABranchBeforeItIsGathered) {
  if (std::string(GetParam()) == "resource") return;
  GraphSession s;
  const TableNodes table = MakeTable(GetParam());
  const Output flag = Placeholder(DType::kBool, Shape(), {.name = "flag"});
  const Output merged = Cond(
      flag, [&] { return Identity(table.value); }, [&] { return table.value * 2; });
  const Gradient dx = SparseGradients(Cubes(GatherV2(merged, {1, 5}, 0)), {merged, table.x})[0];
  ASSERT_TRUE(dx.is_sparse());
  const Output by_table = Gradients(Cubes(GatherV2(merged, {1, 5}, 0)), {table.x})[0];
  ASSERT_OK(s.graph.error());
  ASSERT_OK(s.Run({}, {table.initializer}).status());
  for (const bool taken : {true, false}) {
    auto value = s.Run({by_table}, {}, {{"flag", FlagIs(taken)}});
    ASSERT_OK(value.status());
    const double factor = taken ? 1 : 8;
    EXPECT_DOUBLE_EQ(Numbers((*value)[0])[2], factor * 3 * 1.0 * 1.0);
    EXPECT_DOUBLE_EQ(Numbers((*value)[0])[11], factor * 3 * 3.25 * 3.25);
    EXPECT_DOUBLE_EQ(Numbers((*value)[0])[0], 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, RowGradientsTest, ::testing::Values("tensor", "ref", "resource"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::testing
