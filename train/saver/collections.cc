// SPDX-License-Identifier: Apache-2.0
#include "train/saver/collections.h"

#include <set>

#include "core/op/op_traits.h"
#include "proto/meta_graph.pb.h"
#include "proto/variable.pb.h"

namespace tenon {
namespace {

constexpr char kVariables[] = "variables";
constexpr char kTrainableVariables[] = "trainable_variables";
constexpr char kLocalVariables[] = "local_variables";
/// What else is a list of VariableDef.
constexpr const char* kListsOfVariables[] = {"global_step", "model_variables",
                                             "moving_average_variables", "metric_variables"};
/// Collections of tensors and nodes that a Graph may have and TensorFlow gives a meaning.
constexpr const char* kListsOfNodes[] = {"losses",
                                         "regularization_losses",
                                         "update_ops",
                                         "summaries",
                                         "train_op",
                                         "init_op",
                                         "ready_op",
                                         "local_init_op",
                                         "summary_op",
                                         "ready_for_local_init_op",
                                         "table_initializer",
                                         "asset_filepaths"};

std::string TensorNameOf(const Endpoint& e) { return StrCat(e.node->name(), ":", e.index); }

std::string DescribeVariable(const VariableEntry& v) {
  VariableDef def;
  def.set_variable_name(TensorNameOf({v.ref, 0}));
  def.set_initializer_name(v.initializer->name());
  def.set_snapshot_name(TensorNameOf({v.value, 0}));
  // An Assign, of either kind, has the value second.
  if (v.initializer->num_inputs() > 1) {
    def.set_initial_value_name(TensorNameOf(v.initializer->input(1)));
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

/// Reads one collection after the other.
class CollectionReader {
 public:
  CollectionReader(const MetaGraphDef& meta, const std::string& prefix, const Graph& graph)
      : meta_(meta), prefix_(prefix), graph_(graph) {}

  StatusOr<MetaGraphCollections> Read() && {
    TENON_ASSIGN_OR_RETURN(const auto trainable, Definitions(kTrainableVariables));
    for (const VariableDef& def : trainable) trainable_.insert(def.variable_name());
    for (const char* name : {kVariables, kLocalVariables, kTrainableVariables}) {
      TENON_RETURN_IF_ERROR(InCollection(ReadVariables(name, name == kLocalVariables), name));
    }
    for (const auto& [name, collection] : SortedCollections()) {
      const bool read =
          name == kVariables || name == kLocalVariables || name == kTrainableVariables;
      if (!read) TENON_RETURN_IF_ERROR(InCollection(ReadMembers(name, *collection), name));
    }
    return std::move(found_);
  }

 private:
  static Status InCollection(const Status& status, std::string_view name) {
    return Annotate(status, StrCat("collection '", name, "'"));
  }

  std::vector<std::pair<std::string, const CollectionDef*>> SortedCollections() const {
    std::vector<std::pair<std::string, const CollectionDef*>> sorted;
    for (const auto& [name, collection] : meta_.collection_def()) {
      sorted.emplace_back(name, &collection);
    }
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }

  /// The members of a list of variables; none where there is no such collection.
  StatusOr<std::vector<VariableDef>> Definitions(const std::string& name) const {
    std::vector<VariableDef> definitions;
    const auto found = meta_.collection_def().find(name);
    if (found == meta_.collection_def().end() ||
        found->second.kind_case() == CollectionDef::KIND_NOT_SET) {
      return definitions;
    }
    if (!found->second.has_bytes_list()) {
      return InCollection(
          InvalidArgument("wanted a list of VariableDef messages, found one of other kind"), name);
    }
    for (const std::string& bytes : found->second.bytes_list().value()) {
      if (!definitions.emplace_back().ParseFromString(bytes)) {
        return InCollection(InvalidArgument("member ", definitions.size() - 1, " of ", bytes.size(),
                                            " bytes is no VariableDef"),
                            name);
      }
    }
    return definitions;
  }

  /// A node, or a tensor when a colon says so.
  StatusOr<Endpoint> Find(const std::string& text) const {
    const auto name = ParseTensorName(text);
    if (!name.ok()) return name.status();
    Node* const node = graph_.Find(prefix_ + name->node);
    if (node == nullptr)
      return InvalidArgument("the graph has no node '", prefix_, name->node, "'");
    const bool is_tensor = text.find(':') != std::string::npos;
    if (is_tensor && (name->index < 0 || name->index >= node->num_outputs())) {
      return InvalidArgument("'", text, "' is output ", name->index, " of '", node->name(), "' (",
                             node->op(), "), which has ", node->num_outputs());
    }
    return Endpoint{node, name->index};
  }

  StatusOr<VariableEntry> FindNodes(const VariableDef& def) const {
    TENON_ASSIGN_OR_RETURN(const Endpoint ref, Find(def.variable_name()));
    if (!ref.node->is_variable()) {
      return InvalidArgument("'", ref.node->name(), "' is a ", ref.node->op(),
                             ", wanted a VariableV2, Variable or VarHandleOp");
    }
    const DType dtype = ref.node->attrs().GetOr("dtype", DType::kInvalid);
    TENON_ASSIGN_OR_RETURN(const Endpoint initializer, Find(def.initializer_name()));
    if (!initializer.node->schema().Has(OpTrait::kAssigns) || initializer.node->input(0) != ref) {
      return InvalidArgument("its initializer '", initializer.node->name(), "' is a ",
                             initializer.node->op(), ", wanted an ",
                             IsRef(ref.node->output_type(0)) ? "Assign" : "AssignVariableOp",
                             " to '", ref.node->name(), "'");
    }
    TENON_ASSIGN_OR_RETURN(const Endpoint value, Find(def.snapshot_name()));
    const bool is_value = value.index == 0 && value.node->num_outputs() > 0 &&
                          BaseType(value.node->output_type(0)) == dtype;
    if (!is_value) {
      return InvalidArgument("its value '", def.snapshot_name(), "' of ", value.node->op(),
                             " is no ", ToString(dtype));
    }
    return VariableEntry{ref.node, value.node, initializer.node,
                         trainable_.contains(def.variable_name())};
  }

  StatusOr<std::optional<VariablePart>> PartOf(const VariableDef& def, const Node& ref) const {
    if (!def.has_save_slice_info_def()) return std::optional<VariablePart>();
    const SaveSliceInfoDef& slice = def.save_slice_info_def();
    VariablePart part{prefix_ + slice.full_name(),
                      {slice.full_shape().begin(), slice.full_shape().end()},
                      {slice.var_offset().begin(), slice.var_offset().end()},
                      {slice.var_shape().begin(), slice.var_shape().end()}};
    const PartialShape shape = ref.attrs().GetOr("shape", PartialShape());
    const size_t rank = part.shape.size();
    bool fits = part.begin.size() == rank && part.extent.size() == rank &&
                (!shape.rank_known() || shape.rank() == static_cast<int>(rank));
    for (size_t i = 0; fits && i < rank; ++i) {
      const int64_t begin = part.begin[i], extent = part.extent[i];
      fits = begin >= 0 && extent >= 0 && extent <= part.shape[i] &&
             begin <= part.shape[i] - extent &&
             (!shape.rank_known() || shape.dim(static_cast<int>(i)) == extent);
    }
    if (fits) return std::optional(std::move(part));
    return InvalidArgument("it has shape ", shape.ToString(), ", and cannot be the part [",
                           Join(part.extent, ","), "] at [", Join(part.begin, ","),
                           "] of a variable of shape [", Join(part.shape, ","), "]");
  }

  Status ReadVariables(const std::string& name, bool local) {
    TENON_ASSIGN_OR_RETURN(const auto definitions, Definitions(name));
    for (const VariableDef& def : definitions) {
      const auto in_variable = [&](const Status& status) {
        return Annotate(status, StrCat("variable '", def.variable_name(), "'"));
      };
      auto nodes = FindNodes(def);
      if (!nodes.ok()) return in_variable(nodes.status());
      auto part = PartOf(def, *nodes->ref);
      if (!part.ok()) return in_variable(part.status());
      if (!known_.insert(nodes->ref).second) continue;
      nodes->part = *std::move(part);
      nodes->local = local;
      found_.variables.push_back(*std::move(nodes));
    }
    return OkStatus();
  }

  Status ReadMembers(const std::string& name, const CollectionDef& collection) {
    for (const std::string& text : collection.node_list().value()) {
      TENON_ASSIGN_OR_RETURN(const Endpoint member, Find(text));
      found_.members.emplace_back(name, member);
    }
    const bool of_variables = std::find(std::begin(kListsOfVariables), std::end(kListsOfVariables),
                                        name) != std::end(kListsOfVariables);
    if (!of_variables || !collection.has_bytes_list()) return OkStatus();
    TENON_ASSIGN_OR_RETURN(const auto definitions, Definitions(name));
    for (const VariableDef& def : definitions) {
      TENON_ASSIGN_OR_RETURN(const Endpoint member, Find(def.variable_name()));
      found_.members.emplace_back(name, member);
    }
    return OkStatus();
  }

  const MetaGraphDef& meta_;
  const std::string& prefix_;
  const Graph& graph_;
  std::set<std::string> trainable_;
  std::set<const Node*> known_;
  MetaGraphCollections found_;
};

}  // namespace

void MetaGraphCollections::AddTo(Graph* graph) const {
  graph->variables().insert(graph->variables().end(), variables.begin(), variables.end());
  for (const auto& [name, member] : members) graph->Collection(name).push_back(member);
}

StatusOr<MetaGraphCollections> ReadCollections(const MetaGraphDef& meta, const std::string& prefix,
                                               const Graph& graph) {
  return CollectionReader(meta, prefix, graph).Read();
}

void WriteCollections(Graph& graph, MetaGraphDef* out) {
  auto& collections = *out->mutable_collection_def();
  const auto add = [&](const char* name, const VariableEntry& v) {
    collections[name].mutable_bytes_list()->add_value(DescribeVariable(v));
  };
  for (const VariableEntry& v : graph.variables()) {
    add(v.local ? kLocalVariables : kVariables, v);
    if (v.trainable) add(kTrainableVariables, v);
  }
  for (const char* name : kListsOfVariables) {
    for (const Endpoint& e : graph.Collection(name)) {
      for (const VariableEntry& v : graph.variables()) {
        if (e.node == v.ref || e.node == v.value) add(name, v);
      }
    }
  }
  for (const char* name : kListsOfNodes) {
    for (const Endpoint& e : graph.Collection(name)) {
      const bool is_tensor = e.index < e.node->num_outputs();
      collections[name].mutable_node_list()->add_value(is_tensor ? TensorNameOf(e)
                                                                 : e.node->name());
    }
  }
}

}  // namespace tenon
