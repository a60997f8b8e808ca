// SPDX-License-Identifier: Apache-2.0
#include "ops/variants.h"

#include "core/tensor/variant.h"
#include "ops/sparse/held_tensor.h"
#include "ops/tensor_list/tensor_list.h"

namespace tenon {

void AddVariantDecoders() {
  AddVariantDecoder(TensorList::kTypeName, TensorList::Decode);
  AddVariantDecoder(HeldTensor::kTypeName, HeldTensor::Decode);
  AddRaggedVariantDecoder();
}

}  // namespace tenon
