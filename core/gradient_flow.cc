// SPDX-License-Identifier: Apache-2.0
#include "core/gradient_flow.h"

#include <algorithm>

namespace tenon {

Output GradientFlow::Sum(const Output& x) {
  const auto found = parts_.find({x.node, x.index});
  if (found == parts_.end()) return Output();
  std::vector<Output>& parts = found->second;
  if (parts.size() > 1) {
    const ColocateWith beside(parts[0]);
    parts.assign(1, NodeBuilder("AddN").Inputs(parts).Output());
  }
  return parts[0];
}

Status GradientFlow::Pass(Node* node) {
  std::vector<Output> dys(node->num_outputs());
  bool any = false;
  for (int i = 0; i < node->num_outputs(); ++i) {
    dys[i] = Sum(Output(node, i));
    any |= dys[i].exists();
  }
  TENON_RETURN_IF_ERROR(graph_.error());
  const OpRegistration& op = node->registration();
  if (!any || !op.schema.is_differentiable || node->num_inputs() == 0) return OkStatus();
  const bool wanted = std::any_of(node->inputs().begin(), node->inputs().end(),
                                  [&](const Endpoint& in) { return Between(in.node); });
  if (!wanted) return OkStatus();
  if (!op.gradient) {
    return InvalidArgument("node '", node->name(), "' (", node->op(),
                           "): the op has no gradient function");
  }
  GradContext g(*node, dys, value_of_);
  {
    const NameScope in(StrCat(node->name(), "_grad"));
    const ColocateWith beside(node);
    op.gradient(g);
  }
  TENON_RETURN_IF_ERROR(Annotate(g.status(), StrCat("gradient of node '", node->name(), "'")));
  TENON_RETURN_IF_ERROR(graph_.error());
  for (int i = 0; i < node->num_inputs(); ++i) {
    if (g.dx(i).exists() && Between(node->input(i).node)) Add(node->input(i), g.dx(i));
  }
  return OkStatus();
}

}  // namespace tenon
