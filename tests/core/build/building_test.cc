// SPDX-License-Identifier: Apache-2.0
#include "core/build/building.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>
#include <type_traits>

#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/random/initial_values.h"
#include "ops/register.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using tenon::testing::IsError;
using tenon::testing::kInvalid;
using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::SizeIs;

/// "building_test.cc:<line>: ", where the mistakes of this file are.
std::string At(unsigned line) { return StrCat("building_test.cc:", line, ": "); }

template <typename T>
std::vector<T> Elements(const Tensor& tensor) {
  return std::vector<T>(tensor.flat<T>().begin(), tensor.flat<T>().end());
}

Tensor ValueOf(const Output& constant) {
  auto value = constant.node->attrs().Get<Tensor>("value");
  EXPECT_OK(value);
  return *value;
}

class BuildingTest : public ::testing::Test {
 protected:
  static Output Floats(const PartialShape& shape = PartialShape()) {
    return Placeholder(DType::kFloat, shape);
  }

  Graph graph_{AllOps()};
  GraphBuilding building_{graph_};
};

TEST_F(BuildingTest, LiteralsHaveTheNarrowestOrdinaryDtype) {
  EXPECT_EQ(Const(true).dtype(), DType::kBool);
  EXPECT_EQ(Const(7).dtype(), DType::kInt32);
  EXPECT_EQ(Const(int64_t{7}).dtype(), DType::kInt32);
  EXPECT_EQ(Const(int64_t{1} << 40).dtype(), DType::kInt64);
  EXPECT_EQ(Const(1.5).dtype(), DType::kFloat);
  EXPECT_EQ(Const(1.5f).dtype(), DType::kFloat);
  EXPECT_EQ(Const("text").dtype(), DType::kString);
  EXPECT_EQ(Const({1, 2.5, 3}).dtype(), DType::kFloat);
  EXPECT_EQ(Const({1, int64_t{1} << 40}).dtype(), DType::kInt64);
  EXPECT_OK(building_.status());
}

TEST_F(BuildingTest, BracesAreDimensions) {
  const Output matrix = Const({{1, 2, 3}, {4, 5, 6}}, {.dtype = DType::kDouble});
  EXPECT_EQ(matrix.shape(), (PartialShape{2, 3}));
  EXPECT_THAT(Elements<double>(ValueOf(matrix)), ElementsAre(1, 2, 3, 4, 5, 6));
  const Output vector = Const(std::vector<int64_t>{7, 8});
  EXPECT_EQ(vector.dtype(), DType::kInt64);
  EXPECT_THAT(Elements<int64_t>(ValueOf(vector)), ElementsAre(7, 8));
}

TEST_F(BuildingTest, BracesAroundOneAreDimensionsToo) {
  EXPECT_EQ(Const(1).shape(), PartialShape({}));
  EXPECT_EQ(Const({1}).shape(), PartialShape{1});
  EXPECT_EQ(Const({{1}}).shape(), (PartialShape{1, 1}));
  EXPECT_EQ(Const({{1, 2}}).shape(), (PartialShape{1, 2}));
  EXPECT_EQ(Const({{{1}}}).shape(), (PartialShape{1, 1, 1}));
  EXPECT_EQ(Const({"a", "b"}).shape(), PartialShape{2});
  EXPECT_EQ(Const({{"a", "b"}, {"c", "d"}}).shape(), (PartialShape{2, 2}));
}

TEST_F(BuildingTest, WholeNumbersAreExact) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(Elements<int64_t>(ValueOf(Const({most, most - 1, -most - 1}))),
              ElementsAre(most, most - 1, -most - 1));
  EXPECT_OK(building_.status());
}

TEST(LiteralTest, RaggedBracesAreRefused) {
  const Literal pair{1, 2};
  for (const Literal& literal : {Literal{pair, Literal{1, 2, 3}}, Literal{pair, 3},
                                 Literal{3, pair}, Literal{pair, Literal{pair, pair}}}) {
    EXPECT_THAT(literal.ToTensor(DType::kInt32), IsError(kInvalid, "differ in length"));
  }
}

TEST(LiteralTest, WhatDoesNotFitIsRefused) {
  const auto refused = [](const Literal& literal, DType dtype, std::string_view message) {
    EXPECT_THAT(literal.ToTensor(dtype), IsError(kInvalid, message));
  };
  refused(3.5, DType::kInt32, "the literal 3.5 is no int32");
  refused(300, DType::kUInt8, "the literal 300 is no uint8");
  refused(-1, DType::kUInt8, "the literal -1 is no uint8");
  refused(2, DType::kBool, "the literal 2 is no bool");
  refused(9223372036854775808.0, DType::kInt64, "is no int64");
  refused("1", DType::kFloat, "the literal \"1\" is no float");
  refused(1, DType::kString, "is no string");
  EXPECT_OK(Literal(3.0).ToTensor(DType::kInt32));
  EXPECT_OK(Literal(255).ToTensor(DType::kUInt8));
  EXPECT_OK(Literal(-128).ToTensor(DType::kInt8));
}

TEST_F(BuildingTest, LiteralsTakeTheDtypeOfTheOtherInput) {
  for (const DType dtype : {DType::kHalf, DType::kDouble, DType::kInt64, DType::kUInt8}) {
    const Output x = Placeholder(dtype, {});
    EXPECT_EQ((x * 2).dtype(), dtype);
    EXPECT_EQ((2 * x).node->input(0).node->op(), "Const");
    EXPECT_EQ((2 * x).dtype(), dtype);
  }
  EXPECT_OK(building_.status());
}

TEST_F(BuildingTest, LiteralsAloneTakeADtypeThatHoldsThemAll) {
  EXPECT_EQ(Add(1, 2).dtype(), DType::kInt32);
  EXPECT_EQ(Add(1, 2.5).dtype(), DType::kFloat);
  EXPECT_EQ(Sigmoid(1).dtype(), DType::kFloat) << "Sigmoid takes no int32";
  EXPECT_EQ(AddN({1, 2.5}).dtype(), DType::kFloat);
  EXPECT_OK(building_.status());
  Add("one", 2);
  EXPECT_THAT(building_.status(), IsError(kInvalid, "no dtype that the op takes holds it"));
}

TEST_F(BuildingTest, AxesThatAreLeftOutAreAllOfThem) {
  const Output known = Sum(Floats({2, 3, 4}));
  EXPECT_THAT(Elements<int32_t>(ValueOf(known.node->input(1))), ElementsAre(0, 1, 2));
  EXPECT_EQ(known.shape(), PartialShape({}));
  EXPECT_EQ(Sum(Floats({2, 3}), {1}).shape(), PartialShape{2});
  EXPECT_EQ(Sum(Floats({2, 3}), {1}, {.keep_dims = true}).shape(), (PartialShape{2, 1}));
  EXPECT_EQ(Sum(Floats()).node->input(1).node->op(), "Range");
  EXPECT_OK(building_.status());
}

TEST_F(BuildingTest, ScopesNestAndAreLeft) {
  {
    const NameScope outer("outer");
    EXPECT_EQ(NoOp({.name = "a"})->name(), "outer/a");
    {
      const NameScope inner("inner");
      EXPECT_EQ(NoOp({.name = "a"})->name(), "outer/inner/a");
      const AtRoot root;
      EXPECT_EQ(NoOp({.name = "a"})->name(), "a");
    }
    EXPECT_EQ(NoOp({.name = "b"})->name(), "outer/b");
  }
  EXPECT_EQ(NoOp({.name = "b"})->name(), "b");
}

TEST_F(BuildingTest, DevicesAreMerged) {
  const DeviceScope job("/job:ps");
  {
    const DeviceScope task("/task:1");
    EXPECT_EQ(NoOp()->requested_device(), "/job:ps/task:1");
    const DeviceScope other("/job:worker");
    EXPECT_EQ(NoOp()->requested_device(), "/job:worker/task:1");
  }
  EXPECT_EQ(NoOp()->requested_device(), "/job:ps");
  const DeviceScope chosen(
      [](const Node& node) { return StrCat("/job:x/cpu:", node.op().size()); });
  EXPECT_EQ(NoOp()->requested_device(), "/job:ps/device:CPU:4");
}

TEST_F(BuildingTest, DependenciesAndNeighboursAdd) {
  Node *a = NoOp(), *b = NoOp();
  const Output x = Floats();
  const ControlDependencies after_a({a});
  {
    const ControlDependencies after_b({b});
    EXPECT_THAT(NoOp()->control_inputs(), ElementsAre(a, b));
  }
  const ColocateWith beside(x);
  Node* const last = NoOp();
  EXPECT_THAT(last->control_inputs(), ElementsAre(a));
  EXPECT_THAT(last->attrs().GetOr("_class", std::vector<std::string>()),
              ElementsAre(StrCat("loc:@", x.name())));
}

TEST_F(BuildingTest, NeighboursHaveItsDeviceWhateverWasEntered) {
  const Output x = [] {
    const DeviceScope on("/job:ps");
    return Floats();
  }();
  const DeviceScope chosen([](const Node&) { return "/job:worker"; });
  const ColocateWith beside(x);
  EXPECT_EQ(NoOp()->requested_device(), "/job:ps");
  const DeviceScope inner("/task:3");
  EXPECT_EQ(NoOp()->requested_device(), "/job:ps/task:3");
}

TEST_F(BuildingTest, NothingIsWaitedForWithoutControlDependencies) {
  const DeviceScope on("/job:ps");
  const NameScope scope("scope");
  const ControlDependencies after({NoOp()});
  const NoControlDependencies at_once;
  Node* const node = NoOp({.name = "node"});
  EXPECT_THAT(node->control_inputs(), SizeIs(0));
  EXPECT_EQ(node->requested_device(), "/job:ps");
  EXPECT_EQ(node->name(), "scope/node");
  const ControlDependencies again({node});
  EXPECT_THAT(NoOp()->control_inputs(), ElementsAre(node));
}

TEST_F(BuildingTest, ABuilderTakesWhatIsEnteredWhenItEnds) {
  NodeBuilder builder("NoOp", "node");
  const NameScope scope("scope");
  EXPECT_EQ(builder.Finish()->name(), "scope/node");
}

TEST(BuildingDeathTest, WhatIsEnteredIsLeftInOrder) {
  const auto leave_first = [] {
    Graph graph(AllOps());
    auto outer = std::make_unique<GraphBuilding>(graph);
    const NameScope inner("inner");
    outer.reset();
  };
  EXPECT_DEATH(leave_first(), "current == &context_");
}

TEST_F(BuildingTest, AnotherGraphInBetweenLeavesThisOne) {
  const NameScope scope("here");
  Graph other(AllOps());
  {
    const GraphBuilding building(other);
    EXPECT_EQ(NoOp()->name(), "NoOp");
  }
  EXPECT_EQ(NoOp()->name(), "here/NoOp");
  EXPECT_NE(other.Find("NoOp"), nullptr);
  EXPECT_EQ(graph_.Find("NoOp"), nullptr);
}

TEST_F(BuildingTest, NamesAreMadeUnique) {
  EXPECT_EQ(NoOp()->name(), "NoOp");
  EXPECT_EQ(NoOp()->name(), "NoOp_1");
  EXPECT_EQ(NoOp({.name = "n"})->name(), "n");
  EXPECT_EQ(NoOp({.name = "n_1"})->name(), "n_1");
  EXPECT_EQ(NoOp({.name = "n"})->name(), "n_2");
}

TEST_F(BuildingTest, OptionsNameNodes) {
  EXPECT_EQ(Floats().name(), "Placeholder");
  EXPECT_EQ(MatMul(Floats({2, 3}), Floats({2, 3}), {.transpose_b = true, .name = "product"}).name(),
            "product");
  EXPECT_EQ(Const(1, {.name = "one"}).name(), "one");
  EXPECT_EQ(Split(0, Floats({4}), 2, {.name = "halves"})[1].name(), "halves:1");
  EXPECT_OK(building_.status());
}

TEST_F(BuildingTest, TheFirstMistakeIsKeptWithItsLine) {
  const Output x = Floats({2, 3});
  const Output bad = MatMul(x, x, {.name = "product"});
  const unsigned line = __LINE__ - 1;
  NodeBuilder("NoSuchOp").Finish();
  const NameScope scope("not a name");
  EXPECT_THAT(building_.status(), IsError(kInvalid, StrCat(At(line), "node 'product' (MatMul): ")));
  EXPECT_EQ(graph_.error(), building_.status());
  EXPECT_EQ(graph_.Validate(), building_.status());
  EXPECT_FALSE(bad.exists());
  EXPECT_EQ(bad.name(), "");
  EXPECT_EQ(bad.dtype(), DType::kInvalid);
  EXPECT_FALSE(bad.shape().rank_known());
  const int nodes = graph_.num_ids();
  EXPECT_EQ(NoOp(), FailedNode());
  EXPECT_THAT(Split(0, bad, 2), ElementsAre(Output(), Output()));
  EXPECT_EQ(graph_.num_ids(), nodes) << "nothing is built after a mistake";
}

TEST_F(BuildingTest, WhatFailedHasAsManyOutputsAsCanBeTold) {
  const Output x = Floats({2, 3});
  const Output bad = MatMul(x, x);
  EXPECT_THAT(Unpack(bad, -1), SizeIs(0));
  EXPECT_THAT(Unpack(bad, 3), SizeIs(3));
  EXPECT_THAT(IdentityN({bad, 1}), SizeIs(2));
  EXPECT_THAT(Split(0, bad, 1 << 30), SizeIs(1 << 16));
}

TEST_F(BuildingTest, AnArgumentHasTheLengthThatAttributesSay) {
  const DTypeVector one = {DType::kInt32};
  NodeBuilder("IdentityN").Inputs({1, 2}).Attr("T", one).Finish();
  EXPECT_THAT(building_.status(), IsError(kInvalid, "takes 1 tensors, found 2"));
}

TEST_F(BuildingTest, OneArgumentIsOneTensor) {
  NodeBuilder("Neg").Inputs({1.0, 2.0}).Finish();
  EXPECT_THAT(building_.status(),
              IsError(kInvalid, "argument 'x' of op Neg takes 1 tensors, found 2"));
}

/// What an Output is not, whatever it converts to.
static_assert(!std::is_constructible_v<bool, Output> && !std::is_convertible_v<int, Output>);
static_assert(!std::is_convertible_v<std::nullptr_t, Output>);

TEST_F(BuildingTest, ComparisonsWithZeroAreOps) {
  const Output x = Floats({2});
  EXPECT_EQ((x > 0).node->op(), "Greater");
  EXPECT_EQ((0 < x).node->op(), "Less");
}

TEST_F(BuildingTest, OperatorsKnowTheirLine) {
  const Output x = Floats({2, 3}), y = Floats({4});
  (void)(Square(x) - y);
  EXPECT_THAT(building_.status(), IsError(kInvalid, At(__LINE__ - 1)));
}

/// As a user's function that builds on behalf of its caller.
Output Product(const Output& x, const std::source_location& at = std::source_location::current()) {
  const CalledFrom caller(at);
  return MatMul(x, x);
}

Output Cube(const Output& x, const std::source_location& at = std::source_location::current()) {
  const CalledFrom caller(at);
  return MatMul(Product(x), x);
}

TEST_F(BuildingTest, MistakesAreTheCallers) {
  Product(Floats({2, 3}));
  EXPECT_THAT(building_.status(), IsError(kInvalid, At(__LINE__ - 1)));
}

TEST_F(BuildingTest, MistakesAreTheOutermostCallers) {
  Cube(Floats({2, 3}));
  EXPECT_THAT(building_.status(), IsError(kInvalid, At(__LINE__ - 1)));
}

TEST_F(BuildingTest, TheCallerIsKeptAtTheRoot) {
  const unsigned line = __LINE__ + 1;
  const CalledFrom caller(std::source_location::current());
  const AtRoot root;
  NodeBuilder("NoSuchOp").Finish();
  EXPECT_THAT(building_.status(), IsError(StatusCode::kNotFound, At(line)));
}

class AnotherGraphTest : public BuildingTest {
 protected:
  /// What building on an output of the outer graph says.
  void Refused(const std::function<void(const Output&)>& build) {
    const Output x = Floats({2});
    Graph other(AllOps());
    const GraphBuilding building(other);
    build(x);
    EXPECT_THAT(building.status(),
                IsError(kInvalid, "is of another graph than the one being built"));
    EXPECT_OK(building_.status());
  }
};

TEST_F(AnotherGraphTest, AnInput) {
  Refused([](const Output& x) { Neg(x); });
}
TEST_F(AnotherGraphTest, ADependency) {
  Refused([](const Output& x) { const ControlDependencies after({x}); });
}
TEST_F(AnotherGraphTest, ANeighbour) {
  Refused([](const Output& x) { const ColocateWith beside(x); });
}
TEST_F(AnotherGraphTest, AGradient) {
  Refused([](const Output& x) { Gradients(x, x); });
  Refused([](const Output& x) { Gradients(Neg(Const(1.0)), x); });
}

TEST_F(BuildingTest, WhatWasNeverAssignedHasNoValue) {
  const ControlDependencies after({Output()});
  EXPECT_THAT(building_.status(), IsError(kInvalid, "has no value"));
}

TEST_F(BuildingTest, ListsOfInputs) {
  const Output x = Floats({2}), y = Floats({2});
  EXPECT_EQ(AddN({x, y, x}).node->num_inputs(), 3);
  EXPECT_EQ(AddN(std::vector<Output>{x, y}).node->num_inputs(), 2);
  EXPECT_EQ(AddN(x).node->num_inputs(), 1);
  EXPECT_EQ(AddN({x, {1, 2}}).dtype(), DType::kFloat);
  EXPECT_OK(building_.status());
}

TEST_F(BuildingTest, SeedsAreTensorFlows) {
  EXPECT_THAT(NextSeeds(0), Pair(0, 0));
  EXPECT_THAT(NextSeeds(5), Pair(87654321, 5));
  SetRandomSeed(42);
  EXPECT_THAT(NextSeeds(0), Pair(42, 0));
  EXPECT_THAT(NextSeeds(5), Pair(42, 5));
  EXPECT_THAT(NextSeeds(0), Pair(42, 1));
}

TEST_F(BuildingTest, SeedsOfManyBitsAreCutAsTensorFlowsAre) {
  constexpr int64_t kModulus = 2147483647;
  SetRandomSeed(0);
  EXPECT_THAT(NextSeeds(0), Pair(0, kModulus));
  EXPECT_THAT(NextSeeds(0), Pair(0, 1));
  SetRandomSeed(kModulus + 5);
  EXPECT_THAT(NextSeeds(2 * kModulus + 3), Pair(5, 3));
  EXPECT_THAT(NextSeeds(-1), Pair(5, kModulus - 1));
}

TEST_F(BuildingTest, ConstOfADtypeIsNeverAnother) {
  const Output half = Placeholder(DType::kHalf, {});
  EXPECT_EQ(Const(half, {.dtype = DType::kHalf}), half);
  EXPECT_EQ(Const(Tensor::Scalar(1.5f), {.dtype = DType::kFloat}).dtype(), DType::kFloat);
  Const(half, {.dtype = DType::kFloat});
  EXPECT_THAT(building_.status(), IsError(kInvalid, "the value is half, wanted float"));
}

TEST_F(BuildingTest, SeedsAreOfTheGraph) {
  SetRandomSeed(42);
  Graph other(AllOps());
  {
    const GraphBuilding building(other);
    EXPECT_THAT(NextSeeds(0), Pair(0, 0));
  }
  EXPECT_THAT(NextSeeds(0), Pair(42, 0));
}

TEST(NoBuildingDeathTest, EndsTheProcess) {
  EXPECT_DEATH(Neg(Output()), "building_test.cc:[0-9]+: no graph is being built");
}

}  // namespace
}  // namespace tenon
