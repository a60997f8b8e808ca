// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/base/sanitizers.h"
#include "core/op/op_traits.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/control_flow/flow.h"
#include "ops/elementwise_kernel.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/nn/nn_ops.h"
#include "ops/queues/queues_ops.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "runtime/passes/pass.h"
#include "runtime/session/local_session.h"
#include "tests/testing/cpu_devices.h"
#include "tests/testing/cpu_time.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::HasSubstr;

class FuseElementwiseTest : public ::testing::Test {
 protected:
  /// The op of the node `name` on the CPU; "" where it is part of another one.
  std::string OpOf(const std::string& name) const {
    EXPECT_OK(graph_.error());
    Graph part = graph_.Clone();
    EXPECT_OK(RunPasses(PassStage::kDevice, &part, {devices_[0].get()}, {}));
    const Node* const node = part.Find(name);
    return node == nullptr ? "" : node->op();
  }

  StatusOr<std::vector<Tensor>> Run(const StepFeeds& feeds, const std::vector<Output>& fetches,
                                    bool fused = true) const {
    LocalSessionOptions options;
    if (!fused) options.passes.disabled = {"fused-elementwise"};
    TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph_, options));
    return session->Run(feeds, fetches);
  }

  /// Runs with the pass and without, and compares all bits.
  void ExpectSame(const StepFeeds& feeds, const std::vector<Output>& fetches,
                  const std::string& what) const {
    const auto with = Run(feeds, fetches), without = Run(feeds, fetches, false);
    ASSERT_OK(with.status()) << what;
    ASSERT_OK(without.status()) << what;
    for (size_t i = 0; i < fetches.size(); ++i) {
      const Tensor &a = (*with)[i], &b = (*without)[i];
      ASSERT_EQ(a.shape(), b.shape()) << what << ", fetch " << i;
      EXPECT_EQ(std::memcmp(a.raw_data(), b.raw_data(), b.num_bytes()), 0)
          << what << ", fetch " << i;
    }
  }

  static Tensor Random(DType dtype, const Shape& shape, int seed) {
    Tensor t(dtype, shape);
    std::mt19937 engine(seed);
    std::normal_distribution<double> normal;
    Dispatch(dtype, FloatTypes(), [&]<typename T>(T) {
      for (int64_t i = 0; i < t.num_elements(); ++i)
        t.data<T>()[i] = static_cast<T>(normal(engine));
    });
    return t;
  }

  Graph graph_{AllOps()};
  const GraphBuilding building_{graph_};
  std::vector<std::unique_ptr<Device>> devices_ =
      MakeCpuDevices("/job:localhost/replica:0/task:0", 1, "localhost");
};

TEST_F(FuseElementwiseTest, OpsThatSayTheyAreElementwiseRunInPieces) {
  int found = 0;
  for (const OpRegistration* op : AllOps().All()) {
    if (!op->schema.Has(OpTrait::kElementwise)) continue;
    ++found;
    const size_t operands = op->schema.inputs.size();
    const AttributeMap attrs{{"T", DType::kFloat}};
    if (op->FindKernel(kCpu, attrs) == nullptr) continue;
    KernelConstruction c("x", op->schema.name, attrs, DTypeVector(operands, DType::kFloat),
                         {DType::kFloat}, *devices_[0]);
    const auto kernel = op->MakeKernel(c);
    ASSERT_OK(kernel.status()) << op->schema.name;
    const auto* const pieces = dynamic_cast<const PiecewiseKernel*>(kernel->get());
    ASSERT_NE(pieces, nullptr) << op->schema.name;
    EXPECT_EQ(pieces->pieces().unary != nullptr, operands == 1) << op->schema.name;
    EXPECT_EQ(pieces->pieces().binary != nullptr, operands == 2) << op->schema.name;
  }
  EXPECT_GT(found, 60);
}

TEST_F(FuseElementwiseTest, NodesThatFeedEachOtherAreOne) {
  const Output x = Placeholder(DType::kFloat, {}, {.name = "x"});
  const Output a = Tanh(x, {.name = "a"});
  const Output b = Mul(a, x, {.name = "b"});
  const Output c = Sub(b, a, {.name = "c"});
  Identity(c, {.name = "y"});
  EXPECT_EQ(OpOf("c"), "_FusedElementwise");
  EXPECT_EQ(OpOf("a"), "");
  EXPECT_EQ(OpOf("b"), "");
  ExpectSame({{x, Random(DType::kFloat, {3000}, 1)}}, {a, b, c}, "all of them fetched");
}

TEST_F(FuseElementwiseTest, ShapesOfAllKindsGiveTheSameBits) {
  const Output x = Placeholder(DType::kFloat, {}, {.name = "x"});
  const Output y = Placeholder(DType::kFloat, {}, {.name = "y"});
  const Output small = Exp(y * 0.5f) + 1.0f;  // of the shape of y
  const Output sum = Tanh(x * small) + Square(x);
  const Output last = Maximum(sum - y, x) / small;
  const Output grad = SigmoidGrad(Sigmoid(last), last);
  const std::vector<std::pair<Shape, Shape>> shapes = {{{}, {}},
                                                       {{1}, {}},
                                                       {{63}, {}},
                                                       {{64}, {64}},
                                                       {{65}, {1}},
                                                       {{1025}, {1025}},
                                                       {{5000}, {1, 5000}},
                                                       {{1, 5000}, {5000}},
                                                       {{40, 100}, {100}},
                                                       {{40, 100}, {40, 1}},
                                                       {{3, 5, 700}, {5, 1}},
                                                       {{3, 5, 70}, {3, 1, 70}},
                                                       {{70, 3}, {3}},
                                                       {{70, 3}, {70, 1}},
                                                       {{100, 1}, {1, 90}},
                                                       {{0, 4}, {4}},
                                                       {{2000, 65}, {65}},
                                                       {{7}, {2, 3, 7}},
                                                       {{1, 1}, {200}},
                                                       {{300000}, {}}};
  for (const auto& [a, b] : shapes) {
    ExpectSame({{x, Random(DType::kFloat, a, 1)}, {y, Random(DType::kFloat, b, 2)}},
               {sum, last, grad, small}, StrCat(a, " and ", b));
    ExpectSame({{x, Random(DType::kFloat, a, 3)}, {y, Random(DType::kFloat, b, 4)}}, {grad},
               StrCat("the last of ", a, " and ", b));
  }
}

TEST_F(FuseElementwiseTest, TypesOfAllKindsGiveTheSameBits) {
  for (const DType type : {DType::kFloat, DType::kDouble, DType::kHalf, DType::kBFloat16}) {
    const Output x = Placeholder(type), y = Placeholder(type);
    const Output z = Sqrt(Abs(x * y - x)) / (Softplus(y) + Relu(x));
    const Output w = TanhGrad(z, Elu(x)) * Erf(y);
    ExpectSame({{x, Random(type, {40, 130}, 1)}, {y, Random(type, {130}, 2)}}, {z, w},
               StrCat(type));
  }
}

TEST_F(FuseElementwiseTest, NoNumbersAndInfiniteOnesStay) {
  const Output x = Placeholder(DType::kFloat);
  Tensor values = Random(DType::kFloat, {400}, 5);
  for (int i = 0; i < 400; i += 3) {
    values.data<float>()[i] = i % 2 == 0 ? std::numeric_limits<float>::quiet_NaN()
                                         : std::numeric_limits<float>::infinity();
  }
  ExpectSame({{x, values}}, {Exp(Log(x) * x) - Relu(x), Maximum(x * 0.0f, -x)}, "NaN");
}

TEST_F(FuseElementwiseTest, AnErrorNamesTheNodeThatFailed) {
  const Output x = Placeholder(DType::kFloat), y = Placeholder(DType::kFloat);
  const Output a = Tanh(x, {.name = "inner"});
  const Output b = Add(a, y, {.name = "the_sum"});
  const Output c = Exp(b, {.name = "outer"});
  const auto values =
      Run({{x, Tensor(DType::kFloat, {100})}, {y, Tensor(DType::kFloat, {99})}}, {c});
  EXPECT_THAT(std::string(Message(values.status())), HasSubstr("node 'the_sum' (Add"));
  EXPECT_THAT(std::string(Message(values.status())), HasSubstr("[100] vs. [99]"));
}

TEST_F(FuseElementwiseTest, NoWayLeadsOutOfAGroupAndBack) {
  const Output x = Placeholder(DType::kFloat, {}, {.name = "x"});
  const Output a = Tanh(x, {.name = "a"});
  const Output b = MatMul(a, a, {.name = "b"});
  const Output c = Mul(a, b, {.name = "c"});
  const Output d = Exp(c, {.name = "d"});
  Identity(d);
  EXPECT_EQ(OpOf("a"), "Tanh");
  EXPECT_EQ(OpOf("d"), "_FusedElementwise");
  ExpectSame({{x, Random(DType::kFloat, {9, 9}, 6)}}, {d}, "around a product");
}

TEST_F(FuseElementwiseTest, WhatFillsAQueueDoesNotWaitForWhatItGives) {
  const Output x = Placeholder(DType::kFloat);
  const Output queue = FIFOQueueV2({DType::kFloat});
  const Output a = Tanh(x, {.name = "a"});
  QueueEnqueueV2(queue, {a}, {.name = "put"});
  const Output got = QueueDequeueV2(queue, {DType::kFloat})[0];
  const Output b = Mul(a, got, {.name = "b"});
  const Output c = Exp(b, {.name = "c"});
  const auto session = MakeLocalSession(graph_);
  ASSERT_OK(session.status());
  const auto values = (*session)->Run({{x, Random(DType::kFloat, {100}, 7)}}, {c}, {"put"});
  EXPECT_OK(values.status());
}

TEST_F(FuseElementwiseTest, BranchesAndWhatIsAroundThemAreNotOne) {
  const Output x = Placeholder(DType::kFloat, {}, {.name = "x"});
  const Output p = Placeholder(DType::kBool, {}, {.name = "p"});
  const Output outer = Tanh(x, {.name = "outer"});
  const auto [output_false, output_true] = Switch(x, p);
  // Dead with the branch, which what `outer` gives is not.
  const Output inner = Mul(outer, output_true, {.name = "inner"});
  const Output y = Merge({Exp(inner), output_false}).output;
  const Output alive = Square(outer, {.name = "alive"});
  const Tensor values = Random(DType::kFloat, {100}, 8);
  for (const bool way : {true, false}) {
    ExpectSame({{x, values}, {p, Tensor::Scalar(way)}}, {y, alive}, "a raw branch");
  }
  const Output cond = Cond(
      p, [&] { return Tanh(x * 2) + x; }, [&] { return Exp(x - 1) * x; });
  const Output after = Sigmoid(cond) * cond + Square(x);
  for (const bool way : {true, false}) {
    ExpectSame({{x, values}, {p, Tensor::Scalar(way)}}, {after}, "a branch");
  }
}

TEST_F(FuseElementwiseTest, LoopsFuseTheirBodies) {
  const Output x = Placeholder(DType::kFloat, {}, {.name = "x"});
  const Output scale = Placeholder(DType::kFloat, {}, {.name = "scale"});
  const auto end = WhileLoop(
      {0, x, x}, [](const auto& v) { return v[0] < 5; },
      [&](const auto& v) {
        const Output next = Tanh(v[1] * scale, {.name = "tanh"}) + v[2];
        const Output branch = Cond(
            v[0] < 2, [&] { return Square(next) * 2; }, [&] { return Neg(next) + scale; });
        return std::vector<Output>{v[0] + 1, Add(branch, next, {.name = "one"}) * 0.5f,
                                   Sub(v[2], branch, {.name = "two"})};
      },
      {.shape_invariants = {PartialShape{}, PartialShape(), PartialShape()}});
  const Output y = Exp(end[1]) - end[2];
  ASSERT_OK(graph_.error());
  int fused = 0;
  Graph part = graph_.Clone();
  ASSERT_OK(RunPasses(PassStage::kDevice, &part, {devices_[0].get()}, {}));
  for (const Node* n : part.nodes()) fused += n->op() == "_FusedElementwise";
  EXPECT_GE(fused, 4);  // the body's, each branch, and what comes behind the loop
  ExpectSame({{x, Random(DType::kFloat, {50}, 9)}, {scale, Random(DType::kFloat, {50}, 10)}}, {y},
             "a loop with a branch");
}

TEST_F(FuseElementwiseTest, ReadsOfVariablesAndNodesThatOthersWaitForStay) {
  const Output x = Placeholder(DType::kFloat, {}, {.name = "x"});
  const Output v = VariableV2(PartialShape{100}, DType::kFloat);
  Exp(Neg(v, {.name = "of_variable"}), {.name = "exp"});
  const Output a = Neg(x, {.name = "waited_for"});
  {
    const ControlDependencies after({a});
    Identity(Exp(a, {.name = "waiting"}), {.name = "end"});
  }
  EXPECT_EQ(OpOf("of_variable"), "Neg");
  EXPECT_EQ(OpOf("waited_for"), "Neg");
  EXPECT_EQ(OpOf("waiting"), "Exp");
}

TEST_F(FuseElementwiseTest, LongChainsAreCutInTimeThatIsLinear) {
  const CpuTime time;
  Output x = Placeholder(DType::kFloat, PartialShape{-1}, {.name = "x"});
  const Output first = x;
  for (int i = 0; i < (kSanitized ? 3000 : 60000); ++i) x = i % 2 == 0 ? Neg(x) : Tanh(x + first);
  ExpectSame({{first, Random(DType::kFloat, {3}, 11)}}, {x}, "a chain");
  EXPECT_LT(time.seconds(), 2 * kLinearSeconds);
}

TEST_F(FuseElementwiseTest, ANodeThatSaysSomethingElseIsRefused) {
  using Numbers = std::vector<int64_t>;
  using Texts = std::vector<std::string>;
  const auto error_of = [&](Texts ops, Numbers operands, Numbers results) {
    Graph graph(AllOps());
    const auto x = graph.AddNode("x", "Placeholder", {{"dtype", DType::kFloat}});
    EXPECT_OK(x.status());
    const Texts names = ops;
    const auto node = graph.AddNode("y", "_FusedElementwise",
                                    {{"N", 1},
                                     {"M", static_cast<int64_t>(results.size())},
                                     {"T", DType::kFloat},
                                     {"ops", std::move(ops)},
                                     {"names", names},
                                     {"operands", std::move(operands)},
                                     {"results", std::move(results)}},
                                    {{*x, 0}});
    EXPECT_OK(node.status());
    const auto session = MakeLocalSession(graph);
    EXPECT_OK(session.status());
    const auto values = (*session)->Run({{"x", Tensor::Scalar(1.0f)}}, {"y"});
    return std::string(Message(values.status()));
  };
  EXPECT_EQ(error_of({"Neg", "Add"}, {0, -1, 1, 0}, {1}), "");
  EXPECT_THAT(error_of({"Neg"}, {0}, {0}), HasSubstr("1 operands"));
  EXPECT_THAT(error_of({"Neg"}, {1, -1}, {0}), HasSubstr("numbers below 1"));
  EXPECT_THAT(error_of({"Neg"}, {-1, -1}, {0}), HasSubstr("numbers below 1"));
  EXPECT_THAT(error_of({"Neg"}, {0, -1}, {1}), HasSubstr("result 0 is 1"));
  EXPECT_THAT(error_of({"Neg", "Neg"}, {0, -1, 0, -1}, {0, 0}), HasSubstr("no other result"));
  EXPECT_THAT(error_of({"Add"}, {0, -1}, {0}), HasSubstr("not elementwise for one operand"));
  EXPECT_THAT(error_of({"L2Loss"}, {0, -1}, {0}), HasSubstr("not elementwise"));
  EXPECT_THAT(error_of({"NoSuchOp"}, {0, -1}, {0}), HasSubstr("wanted an elementwise op"));
  EXPECT_THAT(error_of(Texts(33, "Neg"), Numbers(66, 0), {0}), HasSubstr("33 ops"));
}

}  // namespace
}  // namespace tenon::testing
