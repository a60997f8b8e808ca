// SPDX-License-Identifier: Apache-2.0
#include "tools/run/restore.h"

#include <algorithm>
#include <optional>

#include "core/base/hash_map.h"
#include "core/build/building.h"
#include "core/op/op_traits.h"
#include "data/checkpoint/tensor_bundle.h"
#include "data/files/file.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/io/io_ops.h"
#include "proto/meta_graph.pb.h"
#include "tools/checkpoints.h"

namespace tenon::tools {
namespace {

constexpr std::string_view kMeta = ".meta";

/// A variable, and where a checkpoint has its value.
struct Restored {
  Node* variable;
  std::string key;
  bool is_slice = false;
};

bool IsResourceVariable(const Node& node) {
  return node.is_variable() && !IsRef(node.output_type(0));
}

/// The prefix that a path means, or the error that says what is there.
StatusOr<std::string> PrefixAt(const std::string& path, bool is_remote) {
  if (const auto prefix = FindCheckpoint(path)) return *prefix;
  if (const auto model = FindCheckpoint(JoinPath(path, "variables/variables"))) return *model;
  if (path.ends_with(kMeta)) {
    const auto prefix = FindCheckpoint(path.substr(0, path.size() - kMeta.size()));
    if (prefix) return *prefix;
  }
  // A file of TensorFlow's first format has the prefix's own name.
  if (is_remote || IsRegularFile(path)) return path;
  return NoCheckpoint(path);
}

DType DTypeOfVariable(const Node& variable) {
  return variable.attrs().GetOr("dtype", DType::kInvalid);
}
PartialShape ShapeOfVariable(const Node& variable) {
  return variable.attrs().GetOr("shape", PartialShape());
}

/// Whether what the checkpoint has fits the variable.
Status CheckFits(const BundleReader& reader, const Restored& restored) {
  TENON_ASSIGN_OR_RETURN(const BundleEntry* entry, reader.Find(restored.key));
  const DType dtype = DTypeOfVariable(*restored.variable);
  const PartialShape shape = ShapeOfVariable(*restored.variable);
  if (restored.is_slice) return OkStatus();
  if (dtype == entry->dtype && shape.IsCompatibleWith(entry->shape)) return OkStatus();
  return InvalidArgument("variable '", restored.variable->name(), "' of the graph is ",
                         ToString(dtype), shape.ToString(), ", but the checkpoint '",
                         reader.prefix(), "' has ", ToString(entry->dtype),
                         entry->shape.ToString());
}

/// Calls visit(node) for the roots and all that feeds them, each once; where it returns false, not
/// for what feeds that node. What is fed is not computed.
template <typename Visit>
void VisitBackward(const Graph& graph, const std::vector<std::string>& roots,
                   const std::vector<std::string>& fed, Visit visit) {
  StringSet is_fed(fed.begin(), fed.end());
  std::vector<const Node*> stack;
  flat_hash_set<int> seen;
  const auto push = [&](const Node* node, int output) {
    if (node == nullptr || is_fed.contains(StrCat(node->name(), ":", output)) ||
        (output == 0 && is_fed.contains(node->name()))) {
      return;
    }
    if (seen.insert(node->id()).second) stack.push_back(node);
  };
  for (const std::string& root : roots) {
    const auto name = ParseTensorName(root);
    if (name.ok()) push(graph.Find(name->node), name->index);
  }
  while (!stack.empty()) {
    const Node* const node = stack.back();
    stack.pop_back();
    if (!visit(*node)) continue;
    for (const Endpoint& in : node->inputs()) push(in.node, in.index);
    for (const Node* control : node->control_inputs()) push(control, kControlSlot);
  }
}

std::vector<std::string> TextsOf(const Node* node) {
  const Tensor value = node == nullptr ? Tensor() : node->attrs().GetOr("value", Tensor());
  std::vector<std::string> texts;
  if (value.dtype() != DType::kString) return texts;
  for (const TString& text : value.flat<TString>()) texts.emplace_back(text);
  return texts;
}

/// The variable that gets output `output` of a restoring node, at once or by way of an Identity;
/// null when it is none that can be seen.
Node* AssignedFrom(const Node& node, int output, bool by_identity = true) {
  for (const OutEdge& edge : node.out_edges()) {
    if (edge.output != output) continue;
    if (by_identity && edge.dst->is_identity()) {
      if (Node* const variable = AssignedFrom(*edge.dst, 0, false)) return variable;
    } else if (edge.input == 1 && edge.dst->schema().Has(OpTrait::kAssigns)) {
      Node* const variable = edge.dst->input(0).node;
      if (variable->is_variable()) return variable;
    }
  }
  return nullptr;
}

/// What the saver wants of a checkpoint, as far as its nodes show it.
Status CheckSaver(const Graph& graph, const SaverDef& saver, const BundleReader& reader) {
  std::vector<std::string> keys;
  std::vector<Restored> restored;
  VisitBackward(graph, {saver.restore_op_name()}, {}, [&](const Node& node) {
    if (node.op() != "RestoreV2") return true;
    const std::vector<std::string> names = TextsOf(node.input(1).node);
    const std::vector<std::string> slices = TextsOf(node.input(2).node);
    keys.insert(keys.end(), names.begin(), names.end());
    for (size_t i = 0; i < names.size(); ++i) {
      Node* const variable = AssignedFrom(node, static_cast<int>(i));
      const bool is_slice = i < slices.size() && !slices[i].empty();
      if (variable != nullptr) restored.push_back({variable, names[i], is_slice});
    }
    return true;
  });
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  TENON_RETURN_IF_ERROR(CheckKeys(reader, keys));
  for (const Restored& r : restored) TENON_RETURN_IF_ERROR(CheckFits(reader, r));
  return OkStatus();
}

/// The key of a variable in the checkpoint, by its name; empty when it is not there.
std::string KeyOf(const Node& variable, const BundleReader& reader) {
  if (reader.Contains(variable.name())) return variable.name();
  const std::string shared = variable.attrs().GetOr("shared_name", std::string());
  return !shared.empty() && reader.Contains(shared) ? shared : "";
}

/// The variables whose names are in the checkpoint.
StatusOr<std::vector<Restored>> RestoredByName(const Graph& graph, const BundleReader& reader,
                                               const CheckpointRestore::Options& options) {
  std::vector<Restored> restored;
  std::vector<std::string> variables;
  for (Node* node : graph.nodes()) {
    if (!node->is_variable()) continue;
    variables.push_back(node->name());
    const std::string key = KeyOf(*node, reader);
    if (!key.empty()) restored.push_back({node, key});
  }
  if (variables.empty()) {
    return InvalidArgument("the graph has no variables, to which the checkpoint '", reader.prefix(),
                           "' could give values");
  }
  if (restored.empty()) return CheckKeys(reader, variables);
  if (!options.others_initialise) {
    std::vector<std::string> needed;
    std::vector<std::string> roots = options.step.fetches;
    roots.insert(roots.end(), options.step.targets.begin(), options.step.targets.end());
    VisitBackward(graph, roots, options.step.feeds, [&](const Node& node) {
      if (node.is_variable() && KeyOf(node, reader).empty()) needed.push_back(node.name());
      return true;
    });
    std::sort(needed.begin(), needed.end());
    if (const Status lacks = CheckKeys(reader, needed); !lacks.ok()) {
      return AppendToMessage(lacks, "; --init NODE would initialise what is missing");
    }
  }
  for (const Restored& r : restored) TENON_RETURN_IF_ERROR(CheckFits(reader, r));
  return restored;
}

/// Adds nodes that restore them; the one to run.
StatusOr<std::string> AddRestoringNodes(const std::string& prefix,
                                        const std::vector<Restored>& restored, Graph* graph) {
  const GraphBuilding building(*graph);
  const NameScope scope(UnusedScope("restore"));
  std::vector<std::string> keys;
  DTypeVector dtypes;
  for (const Restored& r : restored) {
    keys.push_back(r.key);
    dtypes.push_back(DTypeOfVariable(*r.variable));
  }
  std::vector<Output> values;
  {
    const DeviceScope host("/device:CPU:0");
    values = RestoreV2(Const(prefix), Const(keys), Const(std::vector<std::string>(keys.size())),
                       std::vector<DType>(dtypes.begin(), dtypes.end()));
  }
  TENON_RETURN_IF_ERROR(building.status());
  std::vector<Output> assigned;
  for (size_t i = 0; i < restored.size(); ++i) {
    Node* const variable = restored[i].variable;
    const ColocateWith beside(variable);
    assigned.emplace_back(NodeBuilder(IsResourceVariable(*variable) ? "AssignVariableOp" : "Assign")
                              .Input(Output(variable))
                              .Input(values[i])
                              .Finish());
  }
  const ControlDependencies after(assigned);
  Node* const all = NoOp({.name = "all"});
  TENON_RETURN_IF_ERROR(building.status());
  return all->name();
}

}  // namespace

StatusOr<CheckpointRestore> CheckpointRestore::Plan(const std::string& path,
                                                    const MetaGraphDef& meta,
                                                    const Options& options, Graph* graph) {
  CheckpointRestore restore;
  TENON_ASSIGN_OR_RETURN(restore.prefix_, PrefixAt(path, options.is_remote));
  const SaverDef& saver = meta.saver_def();
  const bool has_saver = graph->Find(saver.restore_op_name()) != nullptr;
  const bool is_here = FindCheckpoint(restore.prefix_).has_value();
  if (has_saver) {
    if (is_here) {
      TENON_ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(restore.prefix_));
      TENON_RETURN_IF_ERROR(CheckSaver(*graph, saver, *reader));
    }
    restore.feeds_ = {{saver.filename_tensor_name(), Tensor::Scalar(restore.prefix_)}};
    restore.target_ = saver.restore_op_name();
    return restore;
  }
  TENON_ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(restore.prefix_));
  TENON_ASSIGN_OR_RETURN(const std::vector<Restored> restored,
                         RestoredByName(*graph, *reader, options));
  TENON_ASSIGN_OR_RETURN(restore.target_, AddRestoringNodes(restore.prefix_, restored, graph));
  return restore;
}

Status CheckpointRestore::Run(Session& session) const {
  const Status status =
      session.Run(feeds_, std::vector<std::string>(), std::vector<std::string>{target_}).status();
  return Annotate(status, StrCat("cannot restore '", prefix_, "'"));
}

}  // namespace tenon::tools
