// SPDX-License-Identifier: Apache-2.0
#include "tools/graph_ends.h"

#include <set>

#include "core/base/strings.h"
#include "core/op/op_traits.h"
#include "proto/meta_graph.pb.h"

namespace tenon::tools {
namespace {

/// More lines than this say nothing to a person.
constexpr size_t kMostLines = 20;

std::string NodeOfTensor(const std::string& tensor) { return tensor.substr(0, tensor.find(':')); }

/// Whether a node groups assignments to variables, or groups of them, one for each device.
bool GroupsAssignments(const Node& node, int depth = 2) {
  if (node.num_inputs() + node.num_outputs() > 0 || node.control_inputs().empty()) return false;
  for (const Node* before : node.control_inputs()) {
    if (!before->schema().Has(OpTrait::kAssigns) &&
        (depth == 1 || !GroupsAssignments(*before, depth - 1)))
      return false;
  }
  return true;
}

bool IsOfGradients(const Node& node) {
  return StrCat("/", node.name(), "/").find("/gradients/") != std::string::npos;
}
bool IsSummary(const Node& node) { return node.schema().Has(OpTrait::kSummary); }

/// Whether a node that nobody uses says nothing to a person: what gradients and branches have left
/// over, summaries, and the values of variables.
bool IsLeftOver(const Node& node) {
  if (IsOfGradients(node) || IsSummary(node) || node.schema().Has(OpTrait::kShape)) return true;
  if (!node.is_identity()) return false;
  if (node.input(0).node->is_variable()) return true;
  for (const std::string_view branch : {"switch_t", "switch_f", "pred_id"}) {
    if (node.name() == branch || node.name().ends_with(StrCat("/", branch))) return true;
  }
  return false;
}

/// Whether nothing computes with a node's outputs: a loss is used by its gradient, an accuracy by
/// its summary.
bool IsEnd(const Node& node) {
  if (node.is_constant()) return false;
  for (const OutEdge& edge : node.out_edges()) {
    if (IsOfGradients(node) || !(IsOfGradients(*edge.dst) || IsSummary(*edge.dst))) return false;
  }
  return true;
}

/// Whether a node is there for what it changes, though it may have an output.
bool IsRun(const Node& node) {
  const std::string& op = node.op();
  return node.num_outputs() == 0 || op.starts_with("Assign") || op.starts_with("Apply");
}

std::string OutputsOf(const Node& node) {
  std::vector<std::string> outputs;
  for (int i = 0; i < node.num_outputs(); ++i) {
    outputs.push_back(ToString(BaseType(node.output_type(i))) + node.output_shape(i).ToString());
  }
  return Join(outputs, ", ");
}

void AppendLines(const std::vector<std::string>& lines, std::string* out) {
  for (size_t i = 0; i < lines.size() && i < kMostLines; ++i) StrAppend(out, "  ", lines[i], "\n");
  if (lines.size() > kMostLines) {
    StrAppend(out, "  and ", lines.size() - kMostLines, " more (tenon inspect --nodes)\n");
  }
}

}  // namespace

bool MustBeFed(const Node& placeholder) { return placeholder.num_inputs() == 0; }

GraphEnds FindGraphEnds(const Graph& graph, const MetaGraphDef& meta) {
  const SaverDef& saver = meta.saver_def();
  const std::set<std::string> of_saver = {NodeOfTensor(saver.filename_tensor_name()),
                                          NodeOfTensor(saver.save_tensor_name()),
                                          saver.restore_op_name()};
  const std::string scope =
      saver.filename_tensor_name().substr(0, saver.filename_tensor_name().find('/') + 1);
  GraphEnds ends;
  std::vector<const Node*> left_over;
  for (const Node* node : graph.nodes()) {
    if (of_saver.contains(node->name())) continue;
    if (!scope.empty() && node->name().starts_with(scope)) continue;
    if (node->is_placeholder()) {
      ends.placeholders.push_back(node);
    } else if (IsEnd(*node)) {
      (IsRun(*node) ? ends.targets : IsLeftOver(*node) ? left_over : ends.results).push_back(node);
      if (GroupsAssignments(*node)) ends.initializers.push_back(node);
    }
  }
  if (ends.results.empty() && ends.targets.empty()) ends.results = left_over;
  return ends;
}

std::string DescribeGraphEnds(const GraphEnds& ends) {
  std::vector<std::string> fed, results, targets;
  for (const Node* node : ends.placeholders) {
    fed.push_back(StrCat(node->name(), "  ", OutputsOf(*node),
                         MustBeFed(*node) ? "" : "  (has a value of its own)"));
  }
  for (const Node* node : ends.results) {
    results.push_back(StrCat(node->name(), "  ", OutputsOf(*node), "  (", node->op(), ")"));
  }
  for (const Node* node : ends.targets) {
    targets.push_back(StrCat(node->name(), "  (", node->op(), ")"));
  }
  std::string text = fed.empty() ? "fed with nothing\n" : "fed with\n";
  AppendLines(fed, &text);
  if (!results.empty()) text += "ends in, to fetch\n";
  AppendLines(results, &text);
  if (!targets.empty()) text += "ends in, to run\n";
  AppendLines(targets, &text);
  return text;
}

}  // namespace tenon::tools
