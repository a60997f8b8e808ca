// SPDX-License-Identifier: Apache-2.0
// Adds gradients to a graph: add_gradients GRAPH_DEF OUTPUT LOSS X... writes the graph with those
// of the loss to OUTPUT, and prints their names. For gradients_test.py.
#include <cstdio>
#include <fstream>

#include "core/gradient/gradients.h"
#include "core/proto/proto_io_graph.h"
#include "data/checkpoint/meta_graph_file.h"
#include "ops/register.h"
#include "proto/graph.pb.h"

namespace tenon {
namespace {

Status AddGradients(const std::string& from, const std::string& to,
                    const std::vector<std::string>& names) {
  TENON_ASSIGN_OR_RETURN(GraphDef proto, LoadGraphDef(from));
  TENON_ASSIGN_OR_RETURN(Graph graph, GraphFromProto(proto, AllOps()));
  std::vector<Output> values;
  for (const std::string& text : names) {
    TENON_ASSIGN_OR_RETURN(const TensorName name, ParseTensorName(text));
    values.emplace_back(graph.Find(name.node), name.index);
  }
  {
    const GraphBuilding building(graph);
    const std::vector<Output> xs(values.begin() + 1, values.end());
    for (const Output& dx : Gradients(values[0], xs)) std::printf("%s\n", dx.name().c_str());
    TENON_RETURN_IF_ERROR(building.status());
  }
  TENON_RETURN_IF_ERROR(GraphToProto(graph, &proto));
  std::ofstream out(to, std::ios::binary);
  return proto.SerializeToOstream(&out) ? OkStatus() : DataLoss("cannot write ", to);
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() < 4) {
    std::fprintf(stderr, "usage: add_gradients GRAPH_DEF OUTPUT LOSS X...\n");
    return 2;
  }
  const tenon::Status status = tenon::AddGradients(
      arguments[0], arguments[1], std::vector<std::string>(arguments.begin() + 2, arguments.end()));
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(tenon::Message(status)).c_str());
  return status.ok() ? 0 : 1;
}
