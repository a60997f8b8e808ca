// SPDX-License-Identifier: Apache-2.0
#include "train/saver/import_meta_graph.h"

#include <map>

#include "core/device/device_name.h"
#include "core/proto/proto_io_graph.h"
#include "data/checkpoint/meta_graph_file.h"
#include "proto/meta_graph.pb.h"
#include "train/saver/collections.h"

namespace tenon {
namespace {

constexpr std::string_view kColocation = "loc:@";

/// Whether the node gives the handle of a variable.
bool IsVariableHandle(const NodeDef& node, const OpRegistry& ops) {
  const OpRegistration* const op = ops.Find(node.op());
  return op != nullptr && op->schema.is_variable && op->schema.outputs[0].type == DType::kResource;
}

/// Puts `prefix` before all that is named after nodes, so that one graph may be imported twice.
void AddPrefixToNode(const std::string& prefix, const OpRegistry& ops, NodeDef* node) {
  const std::string name = node->name();
  node->set_name(prefix + name);
  for (std::string& input : *node->mutable_input()) {
    input.insert(input.starts_with('^') ? 1 : 0, prefix);
  }
  auto& attrs = *node->mutable_attr();
  if (const auto group = attrs.find("_class"); group != attrs.end()) {
    for (std::string& member : *group->second.mutable_list()->mutable_s()) {
      if (member.starts_with(kColocation)) member.insert(kColocation.size(), prefix);
    }
  }
  // Two loops of one name would be one, and so would two resources.
  if (const auto frame = attrs.find("frame_name"); frame != attrs.end()) {
    frame->second.set_s(prefix + frame->second.s());
  }
  const auto shared = attrs.find("shared_name");
  if (IsVariableHandle(*node, ops) && shared != attrs.end() && shared->second.s() == name) {
    shared->second.set_s(prefix + name);
  }
}

Status CheckNamesAreFree(const GraphDef& def, const Graph& graph) {
  std::string first;
  int taken = 0;
  for (const NodeDef& node : def.node()) {
    const Node* const found = graph.Find(node.name());
    if (found != nullptr && taken++ == 0) {
      first = StrCat("'", found->name(), "' (", found->op(), ")");
    }
  }
  if (taken == 0) return OkStatus();
  return AlreadyExists("the graph that is being built has a node ", first, " already",
                       taken > 1 ? StrCat(", and ", taken - 1, " others of the same names") : "",
                       "; wanted an empty graph, or an import_scope that is free");
}

/// The devices that are entered, as for nodes that are built.
Status PlaceImported(const BuildContext& context, int first_id) {
  if (context.device.empty() && !context.device_function) return OkStatus();
  Graph& graph = *context.graph;
  std::map<Node*, Node*> beside;
  for (int id = first_id; id < graph.num_ids(); ++id) {
    Node* const node = graph.node(id);
    const auto group = node->attrs().GetOr("_class", std::vector<std::string>());
    if (!group.empty() && group[0].starts_with(kColocation)) {
      Node* const other = graph.Find(group[0].substr(kColocation.size()));
      if (other != nullptr && other != node) {
        beside.emplace(node, other);
        continue;
      }
    }
    TENON_ASSIGN_OR_RETURN(std::string device,
                           MergeDeviceNames(context.device, node->requested_device()));
    if (context.device_function) {
      TENON_ASSIGN_OR_RETURN(device, MergeDeviceNames(context.device_function(*node), device));
    }
    node->set_requested_device(std::move(device));
  }
  for (const auto& [node, other] : beside) {
    // What is beside a node may be so by way of others; in a circle nobody says anything.
    Node* last = other;
    for (size_t i = 0; i < beside.size() && beside.contains(last); ++i) last = beside.at(last);
    node->set_requested_device(last->requested_device());
  }
  return OkStatus();
}

StatusOr<std::string> PrefixOfImport(const BuildContext& context, std::string scope) {
  while (scope.ends_with('/')) scope.pop_back();
  if (scope.empty()) return context.prefix;
  if (!IsLegalNodeName(context.prefix + scope)) return IllegalNodeName(scope, "import_scope");
  return StrCat(context.prefix, scope, "/");
}

/// The saver of the file, under the names that nodes have now.
StatusOr<std::unique_ptr<Saver>> SaverOf(const MetaGraphDef& meta, const std::string& prefix,
                                         const Graph& graph, const std::source_location& at) {
  if (!meta.has_saver_def()) {
    const SaverOptions all = {.allow_empty = true, .location = at};
    // A mistake of a Saver stays in the graph, from which what was imported is to go.
    TENON_RETURN_IF_ERROR(Saver::CheckOptions(all, graph));
    auto saver = std::make_unique<Saver>(all);
    TENON_RETURN_IF_ERROR(saver->graph().error());
    return saver;
  }
  SaverDef def = meta.saver_def();
  def.set_filename_tensor_name(prefix + def.filename_tensor_name());
  def.set_save_tensor_name(prefix + def.save_tensor_name());
  def.set_restore_op_name(prefix + def.restore_op_name());
  return Saver::FromProto(def, at);
}

/// Adds nodes and collections; what it leaves behind after an error is the caller's to undo.
StatusOr<std::unique_ptr<Saver>> ImportInto(const BuildContext& context, const MetaGraphDef& meta,
                                            const ImportMetaGraphOptions& options) {
  Graph& graph = *context.graph;
  const int first_id = graph.num_ids();
  TENON_ASSIGN_OR_RETURN(const std::string prefix, PrefixOfImport(context, options.import_scope));
  GraphDef def = meta.graph_def();
  for (NodeDef& node : *def.mutable_node()) {
    if (!prefix.empty()) AddPrefixToNode(prefix, graph.registry(), &node);
    if (options.clear_devices) node.clear_device();
    // A gradient of the program that wrote the file is none of this one's with the same number.
    const auto own_gradient = node.mutable_attr()->find("_gradient_op_type");
    if (own_gradient != node.mutable_attr()->end()) {
      own_gradient->second.set_s("imported/" + own_gradient->second.s());
    }
  }
  TENON_RETURN_IF_ERROR(CheckNamesAreFree(def, graph));
  TENON_RETURN_IF_ERROR(ExtendGraphFromProto(def, &graph));
  if (def.has_versions()) {
    GraphVersions& versions = graph.versions();
    versions.producer = std::min(versions.producer, def.versions().producer());
    versions.min_consumer = std::max(versions.min_consumer, def.versions().min_consumer());
  }
  TENON_RETURN_IF_ERROR(PlaceImported(context, first_id));
  TENON_ASSIGN_OR_RETURN(const MetaGraphCollections collections,
                         ReadCollections(meta, prefix, graph));
  collections.AddTo(&graph);
  return SaverOf(meta, prefix, graph, options.location);
}

}  // namespace

StatusOr<std::unique_ptr<Saver>> ImportMetaGraph(const MetaGraphDef& meta,
                                                 const ImportMetaGraphOptions& options) {
  const CalledFrom caller(options.location);
  const BuildContext& context = CurrentBuilding();
  Graph& graph = *context.graph;
  TENON_RETURN_IF_ERROR(graph.error());
  if (context.flow != nullptr) {
    return InvalidArgument("a graph cannot be imported within a branch or loop");
  }
  const int first_id = graph.num_ids();
  const auto functions = graph.shared_functions();
  const GraphVersions versions = graph.versions();
  auto saver = ImportInto(context, meta, options);
  if (!saver.ok()) {
    // Takes what was added out of the variables and collections, too.
    graph.RemoveNodesFrom(first_id);
    graph.set_functions(functions);
    graph.versions() = versions;
  }
  return saver;
}

StatusOr<std::unique_ptr<Saver>> ImportMetaGraph(const std::string& path,
                                                 const ImportMetaGraphOptions& options) {
  if (IsFolder(path)) {
    return InvalidArgument("cannot import '", path, "': it is a folder, wanted a file PREFIX.meta");
  }
  const auto meta = LoadMetaGraphDef(path);
  if (!meta.ok()) return Annotate(meta.status(), "cannot import a graph");
  const bool is_bare = !meta->has_meta_info_def() && !meta->has_saver_def() &&
                       meta->collection_def().empty() && meta->signature_def().empty();
  if (is_bare) {
    return InvalidArgument(
        "cannot import '", path, "': it is a graph alone, a GraphDef of ",
        meta->graph_def().node_size(),
        " nodes, wanted a MetaGraphDef, which Saver::Save writes to PREFIX.meta");
  }
  auto saver = ImportMetaGraph(*meta, options);
  if (!saver.ok()) return Annotate(saver.status(), StrCat("cannot import '", path, "'"));
  return saver;
}

}  // namespace tenon
