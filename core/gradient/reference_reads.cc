// SPDX-License-Identifier: Apache-2.0
#include "core/gradient/reference_reads.h"
#include "core/op/op_traits.h"

namespace tenon {

const Node* ReferenceRead(Endpoint value) {
  for (int i = 0; i < 16 && value.node != nullptr; ++i) {
    if (IsRef(value.node->output_type(value.index))) return value.node;
    if (!value.node->schema().Has(OpTrait::kHandsOn) || value.node->num_inputs() == 0)
      return nullptr;
    value = value.node->input(0);
  }
  return nullptr;
}

}  // namespace tenon
