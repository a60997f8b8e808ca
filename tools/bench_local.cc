// SPDX-License-Identifier: Apache-2.0
#include "core/proto_io_graph.h"
#include "core/scope.h"
#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "proto/graph.pb.h"
#include "runtime/local_session.h"
#include "tools/bench.h"
#include "tools/mnist_model.h"

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
  Scope root = Scope::Root(ops);
  root.SetSeed(1);
  const MnistModel m = BuildMnistModel(root, 0.001);
  const Node* init = m.variables.Initializer(root);
  TENON_RETURN_IF_ERROR(root.status());
  LocalSessionOptions options;
  options.threads = 1;
  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(root.graph(), options));
  TENON_RETURN_IF_ERROR(session->Run({}, {}, {init->name()}).status());
  TENON_ASSIGN_OR_RETURN(const auto step,
                         session->Prepare({m.images.name(), m.labels.name()},
                                          {m.cross_entropy.name()}, {m.train_op->name()}));
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
  Scope root = Scope::Root(ops);
  const Output x = Placeholder(root, DType::kFloat, {});
  const Output y = Identity(root, x);
  TENON_ASSIGN_OR_RETURN(const auto session, PlainSession(root.graph()));
  TENON_ASSIGN_OR_RETURN(const auto step, session->Prepare({x.name()}, {y.name()}));
  std::vector<Tensor> fetched;
  const Tensor value = Tensor::Scalar(1.0f);
  const auto run = [&] { return step->Run({value}, &fetched); };
  TENON_RETURN_IF_ERROR(TimeCalls(kWarmUp, run).status());
  TENON_ASSIGN_OR_RETURN(const double seconds, TimeCalls(20000, run));
  return seconds / 20000 * 1e6;
}

/// Nanoseconds a node of a step that runs `nodes` of them.
StatusOr<double> PerNode(const Scope& root, const std::string& target, int nodes) {
  TENON_RETURN_IF_ERROR(root.status());
  TENON_ASSIGN_OR_RETURN(const auto session, PlainSession(root.graph()));
  TENON_ASSIGN_OR_RETURN(const auto step, session->Prepare({}, {}, {target}));
  const auto run = [&] { return step->Run({}, nullptr); };
  TENON_RETURN_IF_ERROR(TimeCalls(kWarmUp, run).status());
  TENON_ASSIGN_OR_RETURN(const double seconds, MedianCall(200, run));
  return seconds / nodes * 1e9;
}

StatusOr<double> AddChain(const OpRegistry& ops) {
  constexpr int kNodes = 5000;
  const Scope root = Scope::Root(ops);
  const Output one = Const(root, 1.0f);
  Output x = one;
  for (int i = 0; i < kNodes; ++i) x = Add(root, x, one);
  return PerNode(root, x.node->name(), kNodes);
}

StatusOr<double> NoOpChain(const OpRegistry& ops) {
  constexpr int kNodes = 5000;
  const Scope root = Scope::Root(ops);
  Node* last = NoOp(root);
  for (int i = 1; i < kNodes; ++i) {
    last = NoOp(root.WithControlDependencies({{last, kControlSlot}}));
  }
  return PerNode(root, last->name(), kNodes);
}

StatusOr<double> NoOpFan(const OpRegistry& ops) {
  constexpr int kNodes = 5000;
  const Scope root = Scope::Root(ops);
  const Scope after = root.WithControlDependencies({{NoOp(root), kControlSlot}});
  std::vector<Output> all;
  for (int i = 0; i < kNodes; ++i) all.push_back({NoOp(after), kControlSlot});
  return PerNode(root, NoOp(root.WithControlDependencies(all))->name(), kNodes);
}

/// From the bytes of a GraphDef of 100,000 nodes to the end of its first step.
StatusOr<double> LargeGraph(const OpRegistry& ops) {
  constexpr int kNodes = 100000;
  std::string bytes, last;
  {
    const Scope root = Scope::Root(ops);
    const Output one = Const(root, 1.0f);
    Output x = Placeholder(root.WithName("x"), DType::kFloat, {});
    for (int i = 0; i < kNodes; ++i) x = Add(root, x, one);
    last = x.name();
    GraphDef proto;
    TENON_RETURN_IF_ERROR(GraphToProto(root.graph(), &proto));
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
