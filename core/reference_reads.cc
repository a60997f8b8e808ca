// SPDX-License-Identifier: Apache-2.0
#include "core/reference_reads.h"

#include "core/hash_map.h"

namespace tenon {

const Node* ReferenceRead(Endpoint value) {
  static const auto* const kHandingOn = new flat_hash_set<std::string_view>{
      "Enter",         "Exit",    "ExpandDims",      "Identity", "Merge",
      "NextIteration", "Reshape", "PreventGradient", "Squeeze",  "StopGradient",
      "Switch",        "_SwitchN"};
  for (int i = 0; i < 16 && value.node != nullptr; ++i) {
    if (IsRef(value.node->output_type(value.index))) return value.node;
    if (!kHandingOn->contains(value.node->op()) || value.node->num_inputs() == 0) return nullptr;
    value = value.node->input(0);
  }
  return nullptr;
}

}  // namespace tenon
