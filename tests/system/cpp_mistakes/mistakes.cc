// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <string>

#include "running.h"
#include "tenon/tenon.h"

// What users do wrong in C++. `mistakes NAME` makes one of these mistakes and prints the status
// that comes of it; `mistakes` lists the names. A line with the comment `here` is the one that the
// message must name: cpp_mistakes_test.py looks for it.

using namespace tenon;

namespace {

/// What was built, when a session is opened on it.
Status Open(const Graph& graph) { return MakeLocalSession(graph).status(); }

Output Floats(const PartialShape& shape) { return Placeholder(DType::kFloat, shape); }

// Mistakes of building: what they give is found when a session is opened.

void WrongDtype() {
  const Output x = Floats({2, 2}), n = Placeholder(DType::kInt32, {2, 2});
  MatMul(x, n);  // here
}

void WrongDtypeOfAnOperator() {
  const Output x = Floats({2}), n = Placeholder(DType::kInt32, {2});
  (void)(x + n);  // here
}

void InnerDimensions() {
  const Output x = Floats({2, 3});
  MatMul(x, x, {.name = "product"});  // here
}

void NoBroadcast() {
  const Output x = Floats({2, 3}), y = Floats({4});
  const Output z = Square(x) - y;  // here
  Exp(z);
}

void FailedOutput() {
  const Output x = Floats({2, 3});
  const Output product = MatMul(x, x);  // here
  Relu(product);
  Sum(product + x);
}

/// Fails the outer graph with what was wrong in the other one.
void InAnotherGraph(const std::function<void()>& build) {
  Graph& outer = *CurrentBuilding().graph;
  Graph other(AllOps());
  const GraphBuilding building(other);
  build();
  outer.Fail(building.status());
}

void AnotherGraph() {
  const Output x = Floats({});
  InAnotherGraph([&] { Neg(x); });  // here
}

void AnotherGraphInDependencies() {
  const Output x = Floats({});
  InAnotherGraph([&] {
    const ControlDependencies after({x});  // here
    NoOp();
  });
}

void AnotherGraphInColocation() {
  const Output x = Floats({});
  InAnotherGraph([&] {
    const ColocateWith beside(x);  // here
    NoOp();
  });
}

void AnotherGraphInGradients() {
  for (int i = 0; i < 100; ++i) NoOp();
  const Output x = Floats({});
  const Output y = Square(x);
  InAnotherGraph([&] { Gradients(y, x); });  // here
}

void MisspeltAttribute() {
  const Output x = Floats({2, 2});
  NodeBuilder("MatMul")  // here
      .Input(x)
      .Input(x)
      .Attr("transpose_A", true)
      .Finish();
}

void WrongAttribute() {
  const Output x = Floats({2, 2});
  NodeBuilder("MatMul").Input(x).Input(x).Attr("transpose_a", 1.5f).Finish();  // here
}

void MissingAttribute() {
  NodeBuilder("Placeholder").Finish();  // here
}

void UnknownOp() {
  NodeBuilder("MatMull", "product").Finish();  // here
}

void NumberOfInputs() {
  const Output x = Floats({2, 2});
  NodeBuilder("MatMul").Input(x).Finish();  // here
}

void EmptyList() {
  AddN({});  // here
}

void LeftOut() {
  const Output x = Floats({2, 2});
  MatMul(x, {});  // here
}

void NodeName() {
  Placeholder(DType::kFloat, {}, {.name = "a b:1"});  // here
}

void VariableName() {
  const Variable w("my weights", 0.0f);  // here
}

void ScopeName() {
  const NameScope scope("hidden layer");  // here
  Floats({});
}

void EmptyScopeName() {
  const NameScope scope("");  // here
  Floats({});
}

void NeverAssigned() {
  Output x;
  Neg(x);  // here
}

void NeverAssignedDependency() {
  Output x;
  const ControlDependencies after({x});  // here
  NoOp();
}

void NeverAssignedNeighbour() {
  Output x;
  const ColocateWith beside(x);  // here
  NoOp();
}

void NeverAssignedVariable() {
  Variable w;
  const Output x = Floats({});
  (void)(w * x);  // here
}

void NeverAssignedLoss() {
  const Variable w("w", 0.0f);
  Output loss;
  GradientDescent(0.1).Minimize(loss);  // here
}

void GradientOfAnInt() {
  const Output n = Placeholder(DType::kInt32, {});
  Gradients(Square(n), n);  // here
}

void NoPath() {
  const Output x = Placeholder(DType::kFloat, {}, {.name = "x"}), y = Floats({});
  Gradients(Square(y), x);  // here
}

void NoGradient() {
  const Output x = Placeholder(DType::kDouble, {2, 2});
  const Output y = TruncateMod(x, x);
  Gradients(y, x);  // here
}

void NumberOfGradYs() {
  const Output x = Floats({});
  Gradients(Square(x), x, {.grad_ys = {x, x}});  // here
}

void NoOutput() {
  Neg(NoOp());  // here
}

void NoSuchOutput() {
  Neg(Output(Floats({}).node, 3));  // here
}

void ShapeOfGradYs() {
  const Output x = Floats({2});
  Gradients(Square(x), x, {.grad_ys = {Const({1.0, 2.0, 3.0})}});  // here
}

void NoVariable() {
  const Output x = Floats({});
  GradientDescent(0.1).Minimize(Square(x));  // here
}

void NoTrainableVariable() {
  const Variable w("w", 0.0f, {.trainable = false});
  GradientDescent(0.1).Minimize(Square(w));  // here
}

void UnusedVariables() {
  const Variable unused("unused", 0.0f), too("too", 0.0f);
  GradientDescent(0.1).Minimize(Square(Floats({})));  // here
}

void Fraction() {
  const Output n = Placeholder(DType::kInt32, {});
  (void)(n * 3.5);  // here
}

void OutOfRange() {
  const Output n = Placeholder(DType::kUInt8, {});
  (void)(n + 300);  // here
}

void Text() {
  const Output x = Floats({});
  (void)(x + "one");  // here
}

void ConstDtype() {
  Const(-1, {.dtype = DType::kUInt8});  // here
}

void Braces() {
  const Output x = Floats({2, 3});
  (void)Add(x, {{1, 2, 3}, {4, 5}});  // here
}

void DeeperBraces() {
  Const({{1, 2}, 3});  // here
}

void UnknownShapeOfAVariable() {
  const Output x = Floats({-1, 3});
  const Variable w("w", x);  // here
}

/// while (i < 10) i += 5, whose 5 is a constant outside of the loop.
void OutsideOfTheLoop() {
  const Output outside = Const(5, {.name = "five"});
  const Output i = Merge({Enter(0, "loop", {.name = "i"})}).output;
  const auto [leaving, staying] = Switch(i, LoopCond(i < 10), {.name = "step"});
  NextIteration(staying + outside);  // here
}

void ConditionOutsideOfTheLoop() {
  const Output i = Merge({Enter(0, "loop", {.name = "i"})}).output;
  const Output more = Placeholder(DType::kBool, {}, {.name = "more"});
  Switch(i, more, {.name = "step"});  // here
}

void WaitingFromOutsideOfTheLoop() {
  const Output i = Merge({Enter(0, "loop", {.name = "i"})}).output;
  const ControlDependencies after({NoOp()});
  NextIteration(i, {.name = "next"});  // here
}

Output One() { return Const(1); }

void NumberAsPredicate() {
  const Output p = Const(1.0f);
  Cond(p, One, One);  // here
}

void NumberAsCondition() {
  const auto first = [](const std::vector<Output>& values) { return values[0]; };
  const auto same = [](const std::vector<Output>& values) { return values; };
  WhileLoop({0}, first, same);  // here
}

void ValuesOfATensor() {
  Const(Tensor::Of<float>({2, 2}, {1, 2, 3}));  // here
}

void ComplexGradient() {
  const Output x = Placeholder(DType::kComplex64, {}, {.name = "x"});
  Gradients(x, x);  // here
}

void GradientOfNothing() {
  const Output x = Floats({});
  Gradients({}, x);  // here
}

void ConstOfAnotherDtype() {
  Const(Tensor::Scalar(1.5), {.dtype = DType::kFloat});  // here
}

void LengthOfAList() {
  NodeBuilder("IdentityN").Inputs({1, 2}).Attr("T", DTypeVector{DType::kInt32}).Finish();  // here
}

void UnpackOfAMistake() {
  const Output x = Floats({2, 3});
  const Output bad = MatMul(x, x);  // here
  Unpack(bad, -1);
}

void IndexOutOfRange() {
  const Output x = Floats({2, 3});
  (void)x[{0, 3}];  // here
}

void TooManyIndices() {
  const Output x = Floats({2, 3});
  (void)x[{0, 0, 0}];  // here
}

void HalfARange() {
  const Output x = Floats({2, 3});
  (void)x[{{}, {1}}];  // here
}

void FractionAsIndex() {
  const Output x = Floats({2, 3});
  (void)x[{{}, {1.5, 2}}];  // here
}

void ShortAsIndex() {
  const Output x = Floats({2, 3}), i = Placeholder(DType::kInt16, {});
  (void)x[{{0, i}}];  // here
}

void LargeNumberBesideInt32() {
  const Output x = Floats({2, 3}), i = Placeholder(DType::kInt32, {});
  (void)x[{{5000000000, i}}];  // here
}

void IndicesOfTwoDtypes() {
  const Output x = Floats({2, 3}), i = Placeholder(DType::kInt32, {});
  (void)x[{i, Cast(i, DType::kInt64)}];  // here
}

void TwoEllipses() {
  const Output x = Floats({2, 3});
  (void)x[{kEllipsis, kEllipsis}];  // here
}

void DeviceName() {
  const DeviceScope on("/job:ps/tusk:1");  // here
  Floats({});
}

void FirstOfMany() {
  const Output x = Floats({2, 3});
  MatMul(x, x);  // here
  UnknownOp();
  ScopeName();
  NoVariable();
}

/// Nothing that is asked after a mistake does harm.
void AskedAfterwards() {
  const Output x = Floats({2, 3});
  const Output bad = MatMul(x, x);  // here
  Node* const node = GradientDescent(0.1).Minimize(bad);
  const Variable w("w", bad);
  const auto both = Split(0, bad, 2);
  if (bad.exists() || !bad.name().empty() || bad.shape().rank_known() ||
      bad.dtype() != DType::kInvalid || !node->name().empty() || node->num_outputs() != 0 ||
      both[0].exists() || both[1].exists() || w.ref().exists() || w.value().exists() ||
      !GlobalVariablesInitializer()->name().empty()) {
    std::cerr << "what was not built has a value\n";
  }
}

using Building = void();
const std::map<std::string, Building*> kBuilding = {
    {"WrongDtype", WrongDtype},
    {"WrongDtypeOfAnOperator", WrongDtypeOfAnOperator},
    {"InnerDimensions", InnerDimensions},
    {"NoBroadcast", NoBroadcast},
    {"FailedOutput", FailedOutput},
    {"AnotherGraph", AnotherGraph},
    {"AnotherGraphInDependencies", AnotherGraphInDependencies},
    {"AnotherGraphInColocation", AnotherGraphInColocation},
    {"AnotherGraphInGradients", AnotherGraphInGradients},
    {"MisspeltAttribute", MisspeltAttribute},
    {"WrongAttribute", WrongAttribute},
    {"MissingAttribute", MissingAttribute},
    {"UnknownOp", UnknownOp},
    {"NumberOfInputs", NumberOfInputs},
    {"EmptyList", EmptyList},
    {"LeftOut", LeftOut},
    {"NodeName", NodeName},
    {"VariableName", VariableName},
    {"ScopeName", ScopeName},
    {"EmptyScopeName", EmptyScopeName},
    {"OutsideOfTheLoop", OutsideOfTheLoop},
    {"ConditionOutsideOfTheLoop", ConditionOutsideOfTheLoop},
    {"WaitingFromOutsideOfTheLoop", WaitingFromOutsideOfTheLoop},
    {"NumberAsPredicate", NumberAsPredicate},
    {"NumberAsCondition", NumberAsCondition},
    {"ValuesOfATensor", ValuesOfATensor},
    {"ComplexGradient", ComplexGradient},
    {"GradientOfNothing", GradientOfNothing},
    {"ConstOfAnotherDtype", ConstOfAnotherDtype},
    {"LengthOfAList", LengthOfAList},
    {"UnpackOfAMistake", UnpackOfAMistake},
    {"IndexOutOfRange", IndexOutOfRange},
    {"TooManyIndices", TooManyIndices},
    {"HalfARange", HalfARange},
    {"FractionAsIndex", FractionAsIndex},
    {"ShortAsIndex", ShortAsIndex},
    {"LargeNumberBesideInt32", LargeNumberBesideInt32},
    {"IndicesOfTwoDtypes", IndicesOfTwoDtypes},
    {"TwoEllipses", TwoEllipses},
    {"NeverAssigned", NeverAssigned},
    {"NeverAssignedDependency", NeverAssignedDependency},
    {"NeverAssignedNeighbour", NeverAssignedNeighbour},
    {"NeverAssignedVariable", NeverAssignedVariable},
    {"NeverAssignedLoss", NeverAssignedLoss},
    {"GradientOfAnInt", GradientOfAnInt},
    {"NoPath", NoPath},
    {"NoGradient", NoGradient},
    {"NumberOfGradYs", NumberOfGradYs},
    {"NoOutput", NoOutput},
    {"NoSuchOutput", NoSuchOutput},
    {"ShapeOfGradYs", ShapeOfGradYs},
    {"NoVariable", NoVariable},
    {"NoTrainableVariable", NoTrainableVariable},
    {"UnusedVariables", UnusedVariables},
    {"Fraction", Fraction},
    {"OutOfRange", OutOfRange},
    {"Text", Text},
    {"ConstDtype", ConstDtype},
    {"Braces", Braces},
    {"DeeperBraces", DeeperBraces},
    {"UnknownShapeOfAVariable", UnknownShapeOfAVariable},
    {"DeviceName", DeviceName},
    {"FirstOfMany", FirstOfMany},
    {"AskedAfterwards", AskedAfterwards},
};

Status NoGraph() {
  Neg(Output());  // here
  return OkStatus();
}

Status RegisteredTwice() {
  OpRegistry ops;
  RegisterAllOps(ops);
  RegisterAllOps(ops);
  RegisterMathOps(ops);
  Graph graph(ops);
  const GraphBuilding building(graph);
  const Output sum = Const(1) + 2;
  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph));
  TENON_ASSIGN_OR_RETURN(const int32_t three, session->Run<int32_t>({}, sum));
  return three == 3 ? OkStatus() : Internal("1 + 2 = ", three);
}

Status Make(const std::string& name) {
  if (name == "NoGraph") return NoGraph();
  if (name == "RegisteredTwice") return RegisteredTwice();
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  if (const auto& names = RunningMistakes(); std::ranges::count(names, name) > 0) {
    return MakeRunningMistake(graph, name);
  }
  const auto found = kBuilding.find(name);
  if (found == kBuilding.end()) return NotFound("no mistake is called ", name);
  found->second();
  return Open(graph);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2) {
    const Status status = Make(argv[1]);
    if (!status.ok()) std::cerr << status << '\n';
    return status.ok() ? 0 : 1;
  }
  for (const auto& [name, make] : kBuilding) std::cout << name << '\n';
  for (const std::string& name : RunningMistakes()) std::cout << name << '\n';
  std::cout << "NoGraph\nRegisteredTwice\n";
  return 0;
}
