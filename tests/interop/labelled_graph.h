// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <fstream>
#include <functional>
#include <string>

#include "core/build/building.h"
#include "core/proto/proto_io_graph.h"
#include "ops/register.h"
#include "proto/graph.pb.h"

namespace tenon {

/// Prints the name of a tensor, or of a node, of the graph for the test that reads it.
inline void Label(const std::string& label, const Output& output) {
  std::printf("%s %s\n", label.c_str(), output.name().c_str());
}

/// Writes the graph that `build` builds to a file; the status of the process.
inline int WriteLabelledGraph(const std::string& path, const std::function<void()>& build) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  build();
  GraphDef proto;
  Status status = building.status();
  if (status.ok()) status = GraphToProto(graph, &proto);
  std::ofstream out(path, std::ios::binary);
  if (status.ok() && !proto.SerializeToOstream(&out)) status = DataLoss("cannot write ", path);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(Message(status)).c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace tenon
