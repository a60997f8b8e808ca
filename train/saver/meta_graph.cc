// SPDX-License-Identifier: Apache-2.0
#include "train/saver/meta_graph.h"

#include "core/proto_io_graph.h"
#include "proto/meta_graph.pb.h"
#include "proto/variable.pb.h"

namespace tenon {
namespace {

std::string TensorOf(const Endpoint& e) { return StrCat(e.node->name(), ":", e.index); }

std::string DescribeVariable(const VariableNodes& v) {
  VariableDef def;
  def.set_variable_name(TensorOf({v.ref, 0}));
  def.set_initializer_name(v.initializer->name());
  def.set_snapshot_name(TensorOf({v.value, 0}));
  // An Assign, of either kind, has the value second.
  if (v.initializer->num_inputs() > 1) {
    def.set_initial_value_name(TensorOf(v.initializer->input(1)));
  }
  def.set_is_resource(v.is_resource());
  def.set_trainable(v.trainable);
  if (v.part) {
    SaveSliceInfoDef& slice = *def.mutable_save_slice_info_def();
    slice.set_full_name(v.part->name);
    for (const int64_t n : v.part->shape) slice.add_full_shape(n);
    for (const int64_t n : v.part->begin) slice.add_var_offset(n);
    for (const int64_t n : v.part->extent) slice.add_var_shape(n);
  }
  return def.SerializeAsString();
}

void AddVariables(const Graph& graph, const std::vector<Endpoint>& global_step, MetaGraphDef* out) {
  auto& collections = *out->mutable_collection_def();
  const auto add = [&](const char* name, const VariableNodes& v) {
    collections[name].mutable_bytes_list()->add_value(DescribeVariable(v));
  };
  for (const VariableNodes& v : graph.variables()) {
    add(v.local ? "local_variables" : "variables", v);
    if (v.trainable) add("trainable_variables", v);
    for (const Endpoint& step : global_step) {
      if (step.node == v.ref || step.node == v.value) add("global_step", v);
    }
  }
}

/// Tensors and nodes, as their names.
void AddNames(Graph& graph, const char* name, MetaGraphDef* out) {
  for (const Endpoint& e : graph.Collection(name)) {
    const bool tensor = e.index < e.node->num_outputs();
    (*out->mutable_collection_def())[name].mutable_node_list()->add_value(tensor ? TensorOf(e)
                                                                                 : e.node->name());
  }
}

}  // namespace

Status ExportMetaGraph(const Saver& saver, MetaGraphDef* out) {
  out->Clear();
  Graph& graph = saver.graph();
  TENON_RETURN_IF_ERROR(GraphToProto(graph, out->mutable_graph_def()));
  if (!saver.empty()) saver.ToProto(out->mutable_saver_def());
  AddVariables(graph, graph.Collection("global_step"), out);
  for (const char* name : {"losses", "regularization_losses", "update_ops"}) {
    AddNames(graph, name, out);
  }
  return OkStatus();
}

}  // namespace tenon
