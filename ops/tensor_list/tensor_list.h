// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/memory/counted_memory.h"
#include "core/op/kernel.h"
#include "core/op/shape_inference.h"
#include "core/tensor/variant.h"

namespace tenon {

/// A list of tensors of one dtype, as an element of a variant tensor. Immutable once shared.
class TensorList final : public VariantValue {
 public:
  static constexpr std::string_view kTypeName = "tensorflow::TensorList";
  static constexpr int64_t kNoLimit = -1;
  /// Lists within lists: as many as a message can hold.
  static constexpr int kMaxLists = 40;

  TensorList(DType dtype, PartialShape element_shape, int64_t limit = kNoLimit)
      : dtype_(dtype), element_shape_(std::move(element_shape)), limit_(limit) {}

  std::string_view type_name() const override { return kTypeName; }
  StatusOr<VariantData> Encode() const override;
  StatusOr<VariantRef> ZerosLike() const override;
  /// The sum of each element with that of an equally long list; one never set counts as zeros.
  StatusOr<VariantRef> Plus(const VariantValue& other) const override;
  static StatusOr<VariantRef> Decode(VariantData data);

  DType dtype() const { return dtype_; }
  /// What every element fits.
  const PartialShape& element_shape() const { return element_shape_; }
  /// How long PushBack may make it, or kNoLimit.
  int64_t limit() const { return limit_; }
  int64_t size() const { return static_cast<int64_t>(elements_.size()); }
  /// An element never set is invalid.
  const CountedVector<Tensor>& elements() const { return elements_; }

  /// InvalidArgument, saying what was `tried`, unless `shape` fits element_shape().
  Status CheckShape(const Shape& shape, std::string_view tried) const;
  /// Sets, or appends, an element of dtype(). InvalidArgument when lists would be nested too deep.
  Status Set(int64_t i, Tensor element);
  Status Append(Tensor element);
  /// Elements at the end are dropped, or added as never set.
  void Resize(int64_t size) { elements_.resize(size); }
  void PopBack() { elements_.pop_back(); }

 private:
  Status CountLists(const Tensor& element);

  DType dtype_;
  PartialShape element_shape_;
  int64_t limit_;
  int lists_ = 1;  // 1 + that of the deepest list that was ever an element
  CountedVector<Tensor> elements_;
};

/// The list that `v` holds; InvalidArgument, naming `what`, when there is none or it is not of
/// `dtype` (kInvalid: any).
StatusOr<const TensorList*> ListOf(const Variant& v, DType dtype, std::string_view what);
/// The same of the scalar input `i`.
StatusOr<const TensorList*> ListInput(const KernelContext& ctx, int i,
                                      DType dtype = DType::kInvalid);
/// The error of whoever tried to "access" or "modify" an element that is not there.
Status NoElement(std::string_view tried, int64_t index, const TensorList& list);
/// A scalar that holds `list`.
Tensor ListTensor(TensorList list);

/// Input 0, scalar or not, as output 0, for the kernel to change its lists: each is copied unless
/// nobody else holds it. All elements of input 0 must be lists.
StatusOr<absl::Span<Variant>> ChangeLists(KernelContext& ctx);
/// The same of a scalar.
StatusOr<TensorList*> ChangeList(KernelContext& ctx);
/// The list of an element that ChangeLists gave.
TensorList& ChangedList(Variant& v);

/// The shape of elements that `t` says: a vector, -1 for unknown sizes, or a scalar -1 for any.
StatusOr<PartialShape> ReadElementShape(const Tensor& t);
/// What either says of the elements' shape; InvalidArgument when they differ.
StatusOr<PartialShape> MergedShape(const PartialShape& a, const PartialShape& b);
/// What is known of the elements' shape from the list and from input `i`.
StatusOr<PartialShape> ElementShape(const KernelContext& ctx, const TensorList& list, int i);
/// The shape of the elements, as far as input `i` of a shape function tells it.
StatusOr<PartialShape> ElementShape(const ShapeContext& c, int i);

/// Zeros of the dtype; ResourceExhausted when memory is out.
StatusOr<Tensor> ZeroTensor(DType dtype, const Shape& shape);

}  // namespace tenon
