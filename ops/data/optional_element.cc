// SPDX-License-Identifier: Apache-2.0
#include "ops/data/optional_element.h"

#include "core/base/interruption.h"
#include "ops/math/accumulate.h"

namespace tenon {

StatusOr<VariantRef> OptionalElement::ZerosLike() const {
  auto zeros = std::make_shared<OptionalElement>();
  zeros->exists = exists;
  for (const Tensor& t : element) {
    if (Interrupted()) break;
    TENON_ASSIGN_OR_RETURN(zeros->element.emplace_back(), ZerosOf(t));
    TENON_RETURN_IF_ERROR(zeros->CountDepth(zeros->element.back()));
  }
  return VariantRef(std::move(zeros));
}

StatusOr<VariantRef> OptionalElement::Plus(const VariantValue& other) const {
  const auto* const optional = dynamic_cast<const OptionalElement*>(&other);
  if (optional == nullptr) return VariantValue::Plus(other);
  if (exists != optional->exists) {
    return InvalidArgument("Cannot add optionals because one has a value and the other doesn't.");
  }
  if (element.size() != optional->element.size()) {
    return InvalidArgument("Cannot add optionals because they have different numbers of components",
                           " (", element.size(), " and ", optional->element.size(), ").");
  }
  auto sum = std::make_shared<OptionalElement>();
  sum->exists = exists;
  for (size_t i = 0; i < element.size() && !Interrupted(); ++i) {
    TENON_ASSIGN_OR_RETURN(sum->element.emplace_back(), SumOf(element[i], optional->element[i]));
    TENON_RETURN_IF_ERROR(sum->CountDepth(sum->element.back()));
  }
  return VariantRef(std::move(sum));
}

}  // namespace tenon
