// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/graph/graph.h"
#include "ops/register.h"

namespace tenon {

/// The graph of a file: a GraphDef, a MetaGraphDef (.meta), or the folder of a SavedModel, in
/// binary or text form. A graph that was loaded is run as one that was built: its tensors are fed
/// and fetched by name, or by Output(graph.Find("name")).
///
///   TENON_ASSIGN_OR_RETURN(const Graph graph, LoadGraph("frozen.pb"));
///   TENON_ASSIGN_OR_RETURN(auto session, MakeLocalSession(graph));
///   TENON_ASSIGN_OR_RETURN(auto y, session->Run<Tensor>({{"x", image}}, "softmax"));
///
/// Variables have no values yet: ImportMetaGraph and LoadSavedModel restore them. The errors of
/// LoadMetaGraphDef and GraphFromProto, naming the file. `registry` must outlive the graph.
StatusOr<Graph> LoadGraph(const std::string& path, const OpRegistry& registry = AllOps());

/// Writes the graph as a binary GraphDef, which appears whole or not at all. The errors of
/// GraphToProto, and those of files.
Status SaveGraph(const Graph& graph, const std::string& path);

}  // namespace tenon
