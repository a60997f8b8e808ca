// SPDX-License-Identifier: Apache-2.0
#include "ops/broadcast.h"

#include <gtest/gtest.h>

#include <random>

#include "ops/array/array_ops.h"
#include "ops/broadcast_gradient.h"
#include "ops/register.h"
#include "tests/ops/nn/naive_offset.h"
#include "tests/testing/op_runner.h"

namespace tenon::testing {
namespace {

/// A shape that broadcasts to `full`: leading dimensions dropped, others made 1.
Shape Shrunk(const Shape& full, std::mt19937& random) {
  DimVector dims(full.dims().begin(), full.dims().end());
  dims.erase(dims.begin(), dims.begin() + random() % (dims.size() + 1));
  for (int64_t& d : dims) {
    if (random() % 3 == 0) d = 1;
  }
  return Shape(dims);
}

Shape NaiveBroadcast(const Shape& a, const Shape& b) { return BroadcastShapes(a, b)->ToShape(); }

TEST(BroadcastTest, EveryPathAgreesWithElementByElement) {
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    DimVector dims(random() % 5);
    for (int64_t& d : dims) d = random() % 20 == 0 ? 0 : 1 + random() % 4;
    const Shape full(dims), a = Shrunk(full, random), b = Shrunk(full, random);
    const Shape shape = NaiveBroadcast(a, b);
    // float takes the loops of frequent types, uint8 the general one.
    for (const DType type : {DType::kFloat, DType::kUInt8}) {
      const Tensor x = Sample(type, a, 0, 100, round), y = Sample(type, b, 0, 100, round + 1);
      const Tensor z = RunOpOrDie("Sub", {x, y});
      SCOPED_TRACE(StrCat("round ", round, ": ", a.ToString(), " - ", b.ToString()));
      ASSERT_EQ(z.shape().ToString(), shape.ToString());
      for (int64_t i = 0; i < z.num_elements(); ++i) {
        const int64_t p = NaiveOffset(a, shape, i), q = NaiveOffset(b, shape, i);
        if (type == DType::kFloat) {
          ASSERT_EQ(z.data<float>()[i], x.data<float>()[p] - y.data<float>()[q]);
        } else {
          ASSERT_EQ(z.data<uint8_t>()[i],
                    static_cast<uint8_t>(x.data<uint8_t>()[p] - y.data<uint8_t>()[q]));
        }
      }
    }
  }
}

TEST(BroadcastTest, SelectV2AgreesWithElementByElement) {
  std::mt19937 random(6);
  for (int round = 0; round < 200; ++round) {
    DimVector dims(random() % 4);
    for (int64_t& d : dims) d = 1 + random() % 4;
    const Shape full(dims), cs = Shrunk(full, random), ts = Shrunk(full, random),
                            es = Shrunk(full, random);
    const Tensor c = Sample(DType::kBool, cs, 0, 1, round);
    const Tensor t = Sample(DType::kInt32, ts, 0, 100, round + 1);
    const Tensor e = Sample(DType::kInt32, es, -100, -1, round + 2);
    const Tensor z = RunOpOrDie("SelectV2", {c, t, e});
    for (int64_t i = 0; i < z.num_elements(); ++i) {
      const int32_t a = t.data<int32_t>()[NaiveOffset(ts, z.shape(), i)];
      const int32_t b = e.data<int32_t>()[NaiveOffset(es, z.shape(), i)];
      ASSERT_EQ(z.data<int32_t>()[i], c.data<bool>()[NaiveOffset(cs, z.shape(), i)] ? a : b);
    }
  }
}

TEST(BroadcastTest, NeighbouringDimensionsThatBehaveAlikeAreMerged) {
  const Shape a{2, 3, 4, 5}, b{4, 5};
  const Shape* const shapes[] = {&a, &b};
  const auto plan = PlanBroadcast(shapes);
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->dims.size(), 2u);
  EXPECT_EQ(plan->dims[0].size, 6);
  EXPECT_EQ(plan->dims[1].size, 20);
}

TEST(BroadcastTest, ShapesThatDoNotFitAreNamed) {
  const OpResult r = RunOp("Add", {Tensor::Vector<float>({1, 2}), Tensor::Vector<float>({1, 2, 3})},
                           {}, /*hide_inputs=*/true);
  EXPECT_EQ(r.status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(r.status), "Incompatible shapes: [2] vs. [3]");
}

TEST(BroadcastTest, EqualOfShapesThatDoNotFitIsFalseWhenAskedFor) {
  const std::vector<Tensor> in = {Tensor::Vector<float>({1, 2}), Tensor::Vector<float>({1, 2, 3})};
  const AttributeMap attrs = {{"incompatible_shape_error", false}};
  EXPECT_FALSE(*RunOpOrDie("Equal", in, attrs).data<bool>());
  EXPECT_TRUE(*RunOpOrDie("NotEqual", in, attrs).data<bool>());
}

TEST(BroadcastTest, StringsCompareAndJoin) {
  const Tensor a = Tensor::Vector<std::string>({"x", "y"}), b = Tensor::Scalar("y");
  EXPECT_TRUE(RunOpOrDie("Equal", {a, b}).Equals(Tensor::Vector<bool>({false, true})));
  EXPECT_TRUE(RunOpOrDie("Add", {a, b}).Equals(Tensor::Vector<std::string>({"xy", "yy"})));
}

TEST(BroadcastTest, IntegerDivisionByZeroIsAnError) {
  for (const char* op : {"Div", "RealDiv", "FloorDiv", "TruncateDiv", "FloorMod", "TruncateMod"}) {
    const OpResult r =
        RunOp(op, {Tensor::Vector<int32_t>({4, 5}), Tensor::Vector<int32_t>({2, 0})});
    EXPECT_EQ(r.status.code(), StatusCode::kInvalidArgument) << op;
    EXPECT_EQ(Message(r.status), "Integer division by zero") << op;
  }
}

TEST(BroadcastTest, TheLowestIntegerDividedByMinusOneWraps) {
  const Tensor x = Tensor::Scalar(std::numeric_limits<int32_t>::min()), y = Tensor::Scalar(-1);
  for (const char* op : {"Div", "FloorDiv", "TruncateDiv"}) {
    EXPECT_EQ(*RunOpOrDie(op, {x, y}).data<int32_t>(), std::numeric_limits<int32_t>::min()) << op;
  }
  for (const char* op : {"FloorMod", "Mod", "TruncateMod"}) {
    EXPECT_EQ(*RunOpOrDie(op, {x, y}).data<int32_t>(), 0) << op;
  }
}

TEST(BroadcastTest, GradientArgsAreTensorFlows) {
  const auto args = [](std::vector<int32_t> a, std::vector<int32_t> b) {
    return RunOp("BroadcastGradientArgs", {Tensor::Vector(a), Tensor::Vector(b)}).outputs;
  };
  const auto is = [](const Tensor& t, std::vector<int32_t> wanted) {
    return t.Equals(Tensor::Vector(wanted));
  };
  std::vector<Tensor> r = args({1, 3, 1}, {1, 1, 1});
  EXPECT_TRUE(is(r[0], {0, 2}) && is(r[1], {0, 1, 2}));
  r = args({1, 3, 1}, {1, 3, 1});
  EXPECT_TRUE(is(r[0], {}) && is(r[1], {}));
  r = args({2, 3}, {3});
  EXPECT_TRUE(is(r[0], {}) && is(r[1], {0}));
}

TEST(BroadcastTest, KnownShapesNeedNoReductionAtRunTime) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const auto of = [](PartialShape shape) { return Placeholder(DType::kFloat, shape); };
  // A batch of unknown size with a bias: the batch keeps its gradient, the bias sums over axis 0.
  Output x = of({-1, 10}), y = of({10}), dz = of({-1, 10}), dx = dz, dy = dz;
  SumToOperands(x, y, &dx, &dy);
  EXPECT_EQ(dx, dz);
  EXPECT_EQ(dy.node->op(), "Sum");
  EXPECT_EQ(dy.shape(), PartialShape({10}));
}

}  // namespace
}  // namespace tenon::testing
