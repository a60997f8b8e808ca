// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "core/tensor/variant_element.h"

namespace tenon {

/// The form of a variant element outside its process, which a VariantTensorDataProto holds.
struct VariantData {
  std::string type_name;
  std::string metadata;  // in the type's own format
  std::vector<Tensor> tensors;
};

/// What a DT_VARIANT element may hold: an object that ops on one device pass to each other, such as
/// a list or a dataset. Immutable once several elements share it. What a type does not have is
/// Unimplemented.
class VariantValue {
 public:
  /// How many values may lie within each other: they end, and are added, one within the other,
  /// which takes a thread's stack.
  static constexpr int kMaxDepth = 2000;

  virtual ~VariantValue() = default;
  virtual std::string_view type_name() const = 0;
  /// The text that Print shows: the type, unless a value can be said in a word.
  virtual std::string Text() const { return std::string(type_name()); }
  /// Its wire form; the decoder of its type makes an equal value of that.
  virtual StatusOr<VariantData> Encode() const;
  /// What the ops ZerosLike and AddN give, which gradients are made of.
  virtual StatusOr<VariantRef> ZerosLike() const;
  virtual StatusOr<VariantRef> Plus(const VariantValue& other) const;

  /// 1, or 1 more than that of the deepest value that was counted.
  int depth() const { return depth_; }
  /// To be called, before others share the value, with each tensor that it is to hold.
  /// InvalidArgument when values would lie more than kMaxDepth deep.
  Status CountDepth(const Tensor& held);

 private:
  int depth_ = 1;
};

/// Makes the value that was encoded; InvalidArgument for data that no value encodes to.
using VariantDecoder = StatusOr<VariantRef> (*)(VariantData data);

/// From now on DecodeVariant reads values of this type. Thread-safe; a second call for a type does
/// nothing.
void AddVariantDecoder(std::string_view type_name, VariantDecoder decode);
/// Null where there is neither a type nor anything else, as of an empty element. Numbers ("int",
/// "float", "double", "bool", their bytes being the metadata) are always known; InvalidArgument for
/// another type without a decoder.
StatusOr<VariantRef> DecodeVariant(VariantData data);

}  // namespace tenon
