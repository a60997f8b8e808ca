// SPDX-License-Identifier: Apache-2.0
#include "runtime/passes/bypass.h"

#include <algorithm>

#include "core/op/op_traits.h"

namespace tenon {

void ViewsOfVariables::Meet(const Node& node) {
  const bool passes_on = node.schema().Has(OpTrait::kMayShare);
  // A read gives the value of one moment.
  if (!passes_on && node.schema().Has(OpTrait::kReadsVariable)) return;
  for (const Endpoint& in : node.inputs()) {
    const DType type = in.node->output_type(in.index);
    // Queues, arrays and lists give what was put there.
    const bool is_kept = IsRef(type) || type == DType::kResource || type == DType::kVariant;
    if (passes_on ? Has(in) : is_kept) views_.insert(&node);
  }
}

bool ViewsOfVariables::Has(const Endpoint& value) const {
  return IsRef(value.node->output_type(value.index)) || views_.contains(value.node);
}

bool HasControlEdges(const Node& node) {
  const auto is_control = [](const OutEdge& e) { return e.output == kControlSlot; };
  return !node.control_inputs().empty() ||
         std::any_of(node.out_edges().begin(), node.out_edges().end(), is_control);
}

}  // namespace tenon
