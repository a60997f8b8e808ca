// SPDX-License-Identifier: Apache-2.0
#include "train/saver/graph_file.h"

#include "core/proto/proto_io_graph.h"
#include "data/checkpoint/meta_graph_file.h"
#include "data/files/file.h"

namespace tenon {

StatusOr<Graph> LoadGraph(const std::string& path, const OpRegistry& registry) {
  TENON_ASSIGN_OR_RETURN(const GraphDef proto, LoadGraphDef(path));
  StatusOr<Graph> graph = GraphFromProto(proto, registry);
  if (!graph.ok()) return Annotate(graph.status(), path);
  return graph;
}

Status SaveGraph(const Graph& graph, const std::string& path) {
  GraphDef proto;
  TENON_RETURN_IF_ERROR(GraphToProto(graph, &proto));
  return WriteStringToFile(path, proto.SerializeAsString());
}

}  // namespace tenon
