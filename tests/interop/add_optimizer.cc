// SPDX-License-Identifier: Apache-2.0
// Adds an optimizer to a graph: add_optimizer GRAPH_DEF OUTPUT LOSS GLOBAL_STEP KIND SCOPE
// NAME=NUMBER... -- VARIABLE... writes the graph with an optimizer's step for the loss to OUTPUT,
// and prints the names of the step, of the initializer, and of each variable that the optimizer
// has made, a line each. For optimizers_test.py.
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <memory>

#include "core/proto/proto_io_graph.h"
#include "data/checkpoint/meta_graph_file.h"
#include "ops/register.h"
#include "proto/graph.pb.h"
#include "train/optimizers/adagrad.h"
#include "train/optimizers/adam.h"
#include "train/optimizers/ftrl.h"
#include "train/optimizers/gradient_descent.h"
#include "train/optimizers/rmsprop.h"

namespace tenon {
namespace {

struct Request {
  std::string from, to, loss, global_step, kind, scope;
  std::map<std::string, double> numbers;
  std::vector<std::string> variables;

  double Number(const std::string& name, double otherwise) const {
    const auto found = numbers.find(name);
    return found == numbers.end() ? otherwise : found->second;
  }
};

std::unique_ptr<Optimizer> MakeOptimizer(const Request& r, const Output& global_step) {
  const double rate = r.Number("learning_rate", 0.1);
  const double l1 = r.Number("l1_regularization_strength", 0);
  const double l2 = r.Number("l2_regularization_strength", 0);
  const AdamOptions adam{.beta1 = r.Number("beta1", 0.9),
                         .beta2 = r.Number("beta2", 0.999),
                         .epsilon = r.Number("epsilon", 1e-8),
                         .name = r.kind};
  if (r.kind == "GradientDescent") return std::make_unique<GradientDescent>(rate);
  if (r.kind == "Momentum") {
    return std::make_unique<Momentum>(
        rate, r.Number("momentum", 0.9),
        MomentumOptions{.use_nesterov = r.Number("use_nesterov", 0) != 0});
  }
  if (r.kind == "ProximalGradientDescent") {
    return std::make_unique<ProximalGradientDescent>(
        rate, ProximalGradientDescentOptions{.l1_regularization_strength = l1,
                                             .l2_regularization_strength = l2});
  }
  if (r.kind == "Adam") return std::make_unique<Adam>(rate, adam);
  if (r.kind == "AdamW") {
    return std::make_unique<AdamW>(
        rate, AdamWOptions{.weight_decay = r.Number("weight_decay", 0.004), .adam = adam});
  }
  if (r.kind == "Adagrad") return std::make_unique<Adagrad>(rate);
  if (r.kind == "AdagradDA") {
    return std::make_unique<AdagradDA>(
        rate, global_step,
        AdagradDAOptions{.l1_regularization_strength = l1, .l2_regularization_strength = l2});
  }
  if (r.kind == "ProximalAdagrad") {
    return std::make_unique<ProximalAdagrad>(
        rate,
        ProximalAdagradOptions{.l1_regularization_strength = l1, .l2_regularization_strength = l2});
  }
  if (r.kind == "RMSProp") {
    return std::make_unique<RMSProp>(rate,
                                     RMSPropOptions{.momentum = r.Number("momentum", 0),
                                                    .epsilon = r.Number("epsilon", 1e-10),
                                                    .centered = r.Number("centered", 0) != 0});
  }
  if (r.kind == "Adadelta") {
    return std::make_unique<Adadelta>(rate, AdadeltaOptions{.epsilon = r.Number("epsilon", 1e-8)});
  }
  if (r.kind == "Ftrl") {
    return std::make_unique<Ftrl>(
        rate, FtrlOptions{.learning_rate_power = r.Number("learning_rate_power", -0.5),
                          .l1_regularization_strength = l1,
                          .l2_regularization_strength = l2,
                          .l2_shrinkage_regularization_strength =
                              r.Number("l2_shrinkage_regularization_strength", 0),
                          .beta = r.Number("beta", 0)});
  }
  return nullptr;
}

/// A variable that TensorFlow's Python has made, by the names that it gives its nodes.
StatusOr<VariableEntry> Imported(const Graph& graph, const std::string& name, bool trainable) {
  Node* const ref = graph.Find(name);
  if (ref == nullptr) return NotFound("there is no variable '", name, "'");
  const bool resource = ref->op() == "VarHandleOp";
  return VariableEntry{ref, graph.Find(StrCat(name, resource ? "/Read/ReadVariableOp" : "/read")),
                       graph.Find(StrCat(name, "/Assign")), trainable};
}

Status AddOptimizer(const Request& r) {
  TENON_ASSIGN_OR_RETURN(GraphDef proto, LoadGraphDef(r.from));
  TENON_ASSIGN_OR_RETURN(Graph graph, GraphFromProto(proto, AllOps()));
  for (const std::string& name : r.variables) {
    TENON_ASSIGN_OR_RETURN(VariableEntry v, Imported(graph, name, true));
    graph.variables().push_back(v);
  }
  TENON_ASSIGN_OR_RETURN(const VariableEntry step, Imported(graph, r.global_step, false));
  graph.variables().push_back(step);
  {
    const GraphBuilding building(graph);
    const std::unique_ptr<Optimizer> optimizer = MakeOptimizer(r, step.ref);
    if (optimizer == nullptr) return NotFound("there is no optimizer ", r.kind);
    Node* train;
    {
      const NameScope scope(r.scope);
      train = optimizer->Minimize(graph.Find(r.loss), {.global_step = step.ref});
    }
    Node* const init = GlobalVariablesInitializer();
    TENON_RETURN_IF_ERROR(building.status());
    std::printf("%s\n%s\n", train->name().c_str(), init->name().c_str());
    for (const VariableEntry& v : optimizer->variables()) {
      std::printf("%s\n", v.value->name().c_str());
    }
  }
  TENON_RETURN_IF_ERROR(GraphToProto(graph, &proto));
  std::ofstream out(r.to, std::ios::binary);
  return proto.SerializeToOstream(&out) ? OkStatus() : DataLoss("cannot write ", r.to);
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() < 8) {
    std::fprintf(stderr,
                 "usage: add_optimizer GRAPH_DEF OUTPUT LOSS GLOBAL_STEP KIND SCOPE "
                 "NAME=NUMBER... -- VARIABLE...\n");
    return 2;
  }
  tenon::Request request{arguments[0], arguments[1], arguments[2], arguments[3],
                         arguments[4], arguments[5], {},           {}};
  size_t i = 6;
  for (; i < arguments.size() && arguments[i] != "--"; ++i) {
    const size_t equals = arguments[i].find('=');
    request.numbers[arguments[i].substr(0, equals)] = std::stod(arguments[i].substr(equals + 1));
  }
  for (++i; i < arguments.size(); ++i) request.variables.push_back(arguments[i]);
  const tenon::Status status = tenon::AddOptimizer(request);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(tenon::Message(status)).c_str());
  return status.ok() ? 0 : 1;
}
