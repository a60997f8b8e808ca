// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "core/tensor/variant.h"

namespace tenon {

/// A tensor as an element of a variant tensor.
class HeldTensor final : public VariantValue {
 public:
  static constexpr std::string_view kTypeName = "tensorflow::Tensor";

  explicit HeldTensor(Tensor t) : tensor(Settled(std::move(t))) {}
  std::string_view type_name() const override { return kTypeName; }
  StatusOr<VariantData> Encode() const override {
    return VariantData{std::string(kTypeName), {}, {tensor}};
  }
  static StatusOr<VariantRef> Decode(VariantData data) {
    if (data.tensors.size() == 1) return std::make_shared<HeldTensor>(std::move(data.tensors[0]));
    return InvalidArgument("found ", data.tensors.size(), " tensors in a variant that holds one");
  }

  const Tensor tensor;

 private:
  static Tensor Settled(Tensor t) {
    t.Settle();
    return t;
  }
};

}  // namespace tenon
