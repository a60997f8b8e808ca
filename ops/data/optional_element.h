// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/variant.h"
#include "ops/data/dataset.h"

namespace tenon {

/// An element that may be missing (TensorFlow's Optional).
struct OptionalElement final : VariantValue {
  std::string_view type_name() const override { return "tensorflow::data::Optional"; }
  /// An optional with zeros for each tensor of the element; an empty one for an empty one.
  StatusOr<VariantRef> ZerosLike() const override;
  /// The sum, tensor by tensor; InvalidArgument unless both have as many, or both have none.
  StatusOr<VariantRef> Plus(const VariantValue& other) const override;

  bool exists = false;
  DatasetElement element;
};

}  // namespace tenon
