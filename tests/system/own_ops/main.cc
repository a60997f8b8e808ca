// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>

#include "clip.h"
#include "clip_ops.h"

using namespace tenon;

namespace {

struct Model {
  Variable scale{"scale", {1.0f, 2.0f}};
  Output x = Placeholder(DType::kFloat, {2, 3});
  Output y = HardTanh(ScaleRows(x, scale, {.power = 2}));
  Output loss = Sum(y);
  std::vector<Output> gradients = Gradients(loss, {x, scale});
  Node* train = GradientDescent(0.5).Minimize(loss);
  Node* init = GlobalVariablesInitializer();
};

Status Train(Session& session, const Model& m) {
  Tensor x(DType::kFloat, {2, 3});
  const float values[] = {0.1f, 0.2f, 0.3f, 0.1f, 0.2f, 0.5f};
  std::copy(std::begin(values), std::end(values), x.data<float>());

  TENON_RETURN_IF_ERROR(session.Run({}, {}, {m.init}).status());
  TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> found,
                         session.Run({{m.x, x}}, {m.y, m.gradients[0], m.gradients[1]}));
  TENON_RETURN_IF_ERROR(session.Run({}, {}, {m.init}).status());
  TENON_RETURN_IF_ERROR(session.Run({{m.x, x}}, {}, {m.train}).status());
  TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> trained,
                         session.Run({{m.x, x}}, {m.scale, m.loss}));
  for (const auto* tensors : {&found, &trained}) {
    for (const Tensor& tensor : *tensors) {
      for (const float value : tensor.flat<float>()) std::cout << value << ' ';
      std::cout << '\n';
    }
  }
  return OkStatus();
}

Status Run() {
  OpRegistry ops;
  RegisterAllOps(ops);
  RegisterClipOps(ops);
  RegisterClipOps(ops);  // harmless
  Graph graph(ops);
  const GraphBuilding building(graph);
  const Model model;

  TENON_ASSIGN_OR_RETURN(const auto local, MakeLocalSession(graph));
  TENON_RETURN_IF_ERROR(Train(*local, model));

  ServerOptions options;
  options.port = 0;
  TENON_ASSIGN_OR_RETURN(const auto server, Server::Start(options, ops));
  TENON_ASSIGN_OR_RETURN(const auto remote, MakeRemoteSession(server->target(), graph));
  TENON_RETURN_IF_ERROR(Train(*remote, model));

  ScaleRows(model.x, {1, 2, 3});  // a mistake
  std::cout << building.status() << '\n';
  return OkStatus();
}

}  // namespace

int main() {
  const Status status = Run();
  if (!status.ok()) std::cerr << status << '\n';
  return status.ok() ? 0 : 1;
}
