// SPDX-License-Identifier: Apache-2.0
#include "tools/run/names.h"

#include <vector>

#include "core/base/closest_name.h"
#include "core/base/strings.h"

namespace tenon::tools {
namespace {

constexpr int kFewNodes = 8;

StatusOr<const Node*> FindNode(const Graph& graph, const std::string& name, std::string_view flag) {
  const Node* const node = graph.Find(name);
  if (node != nullptr) return node;
  return NotFound(flag, ": the graph has no node '", name, "'", NodeHint(graph, name));
}

}  // namespace

std::string NodeHint(const Graph& graph, const std::string& name) {
  std::vector<std::string> names;
  for (const Node* node : graph.nodes()) names.push_back(node->name());
  const std::string closest = DidYouMean(name, names);
  if (!closest.empty()) return closest;
  if (names.size() <= kFewNodes) return StrCat(", but ", Join(names, ", "));
  return "; tenon inspect --nodes lists those that it has";
}

StatusOr<Endpoint> FindTensor(const Graph& graph, const std::string& name, std::string_view flag) {
  const auto parsed = ParseTensorName(name);
  if (!parsed.ok()) return Annotate(parsed.status(), flag);
  TENON_ASSIGN_OR_RETURN(const Node* node, FindNode(graph, parsed->node, flag));
  if (parsed->index >= 0 && parsed->index < node->num_outputs()) {
    return Endpoint{graph.Find(parsed->node), parsed->index};
  }
  if (node->num_outputs() == 0) {
    return NotFound(flag, ": node '", node->name(), "' (", node->op(),
                    ") has no output; to run it, give --target ", node->name());
  }
  const int last = node->num_outputs() - 1;
  return NotFound(flag, ": node '", node->name(), "' (", node->op(), ") has no output ",
                  parsed->index, last == 0 ? "; its only one is " : "; the last one is ",
                  node->name(), ":", last);
}

StatusOr<const Node*> FindTarget(const Graph& graph, const std::string& name,
                                 std::string_view flag) {
  const auto parsed = ParseTensorName(name);
  if (!parsed.ok()) return Annotate(parsed.status(), flag);
  return FindNode(graph, parsed->node, flag);
}

}  // namespace tenon::tools
