// SPDX-License-Identifier: Apache-2.0
#include "core/build/building.h"
#include "core/proto/proto_io_graph.h"
#include "ops/array/array_basic_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/math/math_basic_ops.h"
#include "proto/graph.pb.h"
#include "runtime/session/local_session.h"
#include "tools/bench.h"
#include "tools/mnist_model.h"
#include "train/optimizers/gradient_descent.h"
#include "train/variables.h"

namespace tenon::tools {
namespace {

constexpr int kWarmUp = 50;

/// A graph whose session has one thread and runs it as it is written.
StatusOr<std::unique_ptr<Session>> PlainSession(const Graph& graph) {
  LocalSessionOptions options;
  options.threads = 1;
  options.passes.enabled = false;
  return MakeLocalSession(graph, options);
}

Tensor Ramp(const Shape& shape) {
  Tensor t(DType::kFloat, shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    t.data<float>()[i] = static_cast<float>(i % 97) / 97;
  }
  return t;
}

StatusOr<double> MnistStep(const OpRegistry& ops) {
  const OneThread one;
  Graph graph(ops);
  GraphBuilding building(graph);
  SetRandomSeed(1);
  GradientDescent descent(0.001);
  const MnistModel m = BuildMnistModel(MnistNetwork::kClassic, descent);
  Node* const init = GlobalVariablesInitializer();
  TENON_RETURN_IF_ERROR(graph.error());
  LocalSessionOptions options;
  options.threads = 1;
  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph, options));
  TENON_RETURN_IF_ERROR(session->Run({}, {}, {init}).status());
  TENON_ASSIGN_OR_RETURN(const auto step,
                         session->Prepare({m.images, m.labels}, {m.loss}, {m.train_op}));
  Tensor labels = Tensor::Zeros(DType::kFloat, {100, 10});
  for (int i = 0; i < 100; ++i) labels.data<float>()[i * 10 + i % 10] = 1;
  const std::vector<Tensor> feeds = {Ramp({100, 784}), labels};
  std::vector<Tensor> fetched;
  const auto run = [&] { return step->Run(feeds, &fetched); };
  TENON_RETURN_IF_ERROR(TimeCalls(kWarmUp, run).status());
  TENON_ASSIGN_OR_RETURN(const double seconds, MedianCall(1000, run));
  return seconds * 1e6;
}

StatusOr<double> SmallestRun(const OpRegistry& ops) {
  Graph graph(ops);
  GraphBuilding building(graph);
  const Output x = Placeholder(DType::kFloat, {});
  const Output y = Identity(x);
  TENON_ASSIGN_OR_RETURN(const auto session, PlainSession(graph));
  TENON_ASSIGN_OR_RETURN(const auto step, session->Prepare({x}, {y}));
  std::vector<Tensor> fetched;
  const Tensor value = Tensor::Scalar(1.0f);
  const auto run = [&] { return step->Run({value}, &fetched); };
  TENON_RETURN_IF_ERROR(TimeCalls(kWarmUp, run).status());
  TENON_ASSIGN_OR_RETURN(const double seconds, TimeCalls(20000, run));
  return seconds / 20000 * 1e6;
}

/// Nanoseconds a node of a step that runs `nodes` of them.
StatusOr<double> PerNode(const Graph& graph, const Node* target, int nodes) {
  TENON_ASSIGN_OR_RETURN(const auto session, PlainSession(graph));
  TENON_ASSIGN_OR_RETURN(const auto step, session->Prepare({}, {}, {target}));
  const auto run = [&] { return step->Run({}, nullptr); };
  TENON_RETURN_IF_ERROR(TimeCalls(kWarmUp, run).status());
  TENON_ASSIGN_OR_RETURN(const double seconds, MedianCall(200, run));
  return seconds / nodes * 1e9;
}

StatusOr<double> AddChain(const OpRegistry& ops) {
  constexpr int kNodes = 5000;
  Graph graph(ops);
  GraphBuilding building(graph);
  const Output one = Const(1.0f);
  Output x = one;
  for (int i = 0; i < kNodes; ++i) x = Add(x, one);
  return PerNode(graph, x.node, kNodes);
}

StatusOr<double> NoOpChain(const OpRegistry& ops) {
  constexpr int kNodes = 5000;
  Graph graph(ops);
  GraphBuilding building(graph);
  Node* last = NoOp();
  for (int i = 1; i < kNodes; ++i) {
    const ControlDependencies after({last});
    last = NoOp();
  }
  return PerNode(graph, last, kNodes);
}

StatusOr<double> NoOpFan(const OpRegistry& ops) {
  constexpr int kNodes = 5000;
  Graph graph(ops);
  GraphBuilding building(graph);
  Node* const first = NoOp();
  std::vector<Output> all;
  {
    const ControlDependencies after({first});
    for (int i = 0; i < kNodes; ++i) all.emplace_back(NoOp());
  }
  const ControlDependencies after(all);
  return PerNode(graph, NoOp(), kNodes);
}

/// From the bytes of a GraphDef of 100,000 nodes to the end of its first step.
StatusOr<double> LargeGraph(const OpRegistry& ops) {
  constexpr int kNodes = 100000;
  std::string bytes, last;
  {
    Graph graph(ops);
    GraphBuilding building(graph);
    const Output one = Const(1.0f);
    Output x = Placeholder(DType::kFloat, {}, {.name = "x"});
    for (int i = 0; i < kNodes; ++i) x = Add(x, one);
    last = x.name();
    GraphDef proto;
    TENON_RETURN_IF_ERROR(GraphToProto(graph, &proto));
    bytes = proto.SerializeAsString();
  }
  TENON_ASSIGN_OR_RETURN(const double seconds, TimeCalls(1, [&]() -> Status {
                           GraphDef proto;
                           if (!proto.ParseFromString(bytes))
                             return Internal("the graph cannot be parsed");
                           TENON_ASSIGN_OR_RETURN(const Graph graph, GraphFromProto(proto, ops));
                           TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph));
                           return session->Run({{"x:0", Tensor::Scalar(0.0f)}}, {last}).status();
                         }));
  return seconds;
}

}  // namespace

std::vector<BenchRow> LocalBenchRows(const OpRegistry& ops) {
  return {
      {"mnist_step", "MNIST step in process, batch 100, 1 thread", "us", false,
       [&ops] { return MnistStep(ops); }},
      {"smallest_run", "smallest run of a prepared step", "us", false,
       [&ops] { return SmallestRun(ops); }},
      {"add_chain", "executor: chain of 5,000 scalar adds, a node", "ns", false,
       [&ops] { return AddChain(ops); }},
      {"noop_chain", "executor: chain of 5,000 NoOps, a node", "ns", false,
       [&ops] { return NoOpChain(ops); }},
      {"noop_fan", "executor: fan of 5,000 NoOps, a node", "ns", false,
       [&ops] { return NoOpFan(ops); }},
      {"large_graph", "GraphDef of 100,000 nodes to the end of its first step", "s", false,
       [&ops] { return LargeGraph(ops); }},
  };
}

}  // namespace tenon::tools
