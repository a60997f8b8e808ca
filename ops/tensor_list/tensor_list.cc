// SPDX-License-Identifier: Apache-2.0
#include "ops/tensor_list/tensor_list.h"

#include <atomic>

#include "core/base/varint.h"
#include "core/proto/proto_io_tensor.h"
#include "ops/arguments.h"
#include "ops/elements.h"
#include "ops/math/accumulate.h"

namespace tenon {

Status TensorList::CheckShape(const Shape& shape, std::string_view tried) const {
  if (element_shape_.IsCompatibleWith(shape)) return OkStatus();
  return InvalidArgument("Tried to ", tried, ". Element shape: ", shape,
                         ", list shape: ", element_shape_);
}

Status TensorList::CountLists(const Tensor& element) {
  TENON_RETURN_IF_ERROR(CountDepth(element));
  if (element.dtype() != DType::kVariant) return OkStatus();
  for (const Variant& v : element.flat<Variant>()) {
    const auto* list = dynamic_cast<const TensorList*>(v.value.get());
    if (list != nullptr) lists_ = std::max(lists_, 1 + list->lists_);
  }
  if (lists_ <= kMaxLists) return OkStatus();
  return InvalidArgument("lists of lists are nested more than ", kMaxLists, " deep");
}

Status TensorList::Set(int64_t i, Tensor element) {
  TENON_RETURN_IF_ERROR(CountLists(element));
  elements_[i] = std::move(element);
  return OkStatus();
}

Status TensorList::Append(Tensor element) {
  TENON_RETURN_IF_ERROR(CountLists(element));
  elements_.push_back(std::move(element));
  return OkStatus();
}

// The metadata: how many elements were never set, their numbers, the dtype and the limit, all as
// varints, and the element shape as a TensorShapeProto.

StatusOr<VariantData> TensorList::Encode() const {
  VariantData data{std::string(kTypeName), {}, {}};
  std::string unset;
  uint64_t count = 0;
  for (int64_t i = 0; i < size(); ++i) {
    if (elements_[i].valid()) {
      data.tensors.push_back(elements_[i]);
    } else {
      ++count;
      AppendVarint(&unset, i);
    }
  }
  AppendVarint(&data.metadata, count);
  data.metadata += unset;
  AppendVarint(&data.metadata, static_cast<uint64_t>(dtype_));
  AppendVarint(&data.metadata, static_cast<uint64_t>(limit_));
  TensorShapeProto shape;
  ShapeToProto(element_shape_, &shape);
  shape.AppendToString(&data.metadata);
  return data;
}

StatusOr<VariantRef> TensorList::Decode(VariantData data) {
  const Status bad = InvalidArgument("the message of a tensor list cannot be read");
  std::string_view rest = data.metadata;
  uint64_t count, dtype_number, limit;
  if (!TakeVarint(&rest, &count) || count > rest.size()) return bad;
  CountedVector<uint64_t> unset(count);
  for (uint64_t& i : unset) {
    if (!TakeVarint(&rest, &i)) return bad;
  }
  if (!TakeVarint(&rest, &dtype_number) || !TakeVarint(&rest, &limit)) return bad;
  if (dtype_number > INT32_MAX) return bad;
  TENON_ASSIGN_OR_RETURN(const DType dtype, DTypeFromProto(static_cast<DataType>(dtype_number)));
  TensorShapeProto proto;
  if (rest.size() > INT32_MAX ||
      !proto.ParseFromArray(rest.data(), static_cast<int>(rest.size()))) {
    return bad;
  }
  TENON_ASSIGN_OR_RETURN(PartialShape shape, PartialShapeFromProto(proto));
  const auto list =
      std::make_shared<TensorList>(dtype, std::move(shape), static_cast<int64_t>(limit));
  auto next = data.tensors.begin();
  auto hole = unset.begin();
  while (next != data.tensors.end() || hole != unset.end()) {
    if (hole != unset.end() && *hole == static_cast<uint64_t>(list->size())) {
      ++hole;
      list->Resize(list->size() + 1);
    } else if (next != data.tensors.end() && next->dtype() == dtype) {
      TENON_RETURN_IF_ERROR(
          list->CheckShape(next->shape(), "decode a tensor with incompatible shape"));
      TENON_RETURN_IF_ERROR(list->Append(std::move(*next++)));
    } else {
      return bad;
    }
  }
  return list;
}

StatusOr<Tensor> ZeroTensor(DType dtype, const Shape& shape) {
  TENON_ASSIGN_OR_RETURN(Tensor zeros, Tensor::Allocate(CpuAllocator(), dtype, shape));
  ZeroElements(&zeros);
  return zeros;
}

StatusOr<VariantRef> TensorList::ZerosLike() const {
  const auto zeros = std::make_shared<TensorList>(*this);
  for (Tensor& element : zeros->elements_) {
    if (!element.valid()) continue;
    TENON_ASSIGN_OR_RETURN(element, ZerosOf(element));
  }
  return zeros;
}

StatusOr<VariantRef> TensorList::Plus(const VariantValue& other) const {
  const auto* list = dynamic_cast<const TensorList*>(&other);
  if (list == nullptr) return VariantValue::Plus(other);
  constexpr const char* kTried = "Trying to add two lists of tensors ";
  if (list->dtype_ != dtype_) {
    return InvalidArgument(kTried, "of different dtypes: ", dtype_, " and ", list->dtype_);
  }
  if (!element_shape_.IsCompatibleWith(list->element_shape_)) {
    return InvalidArgument(kTried, "with incompatible element shapes: ", element_shape_, " and ",
                           list->element_shape_);
  }
  if (list->size() != size()) {
    return InvalidArgument(kTried, "with different lengths: ", size(), " and ", list->size());
  }
  TENON_ASSIGN_OR_RETURN(PartialShape shape, element_shape_.MergeWith(list->element_shape_));
  const auto sum = std::make_shared<TensorList>(dtype_, std::move(shape), limit_);
  for (int64_t i = 0; i < size(); ++i) {
    Tensor a = elements_[i], b = list->elements_[i];
    a.Renew();
    b.Renew();
    Tensor both = a.valid() ? a : b;
    if (a.valid() && b.valid()) {
      TENON_ASSIGN_OR_RETURN(both, SumOf(a, b));
    }
    TENON_RETURN_IF_ERROR(sum->Append(std::move(both)));
  }
  return sum;
}

StatusOr<const TensorList*> ListOf(const Variant& v, DType dtype, std::string_view what) {
  const auto* list = dynamic_cast<const TensorList*>(v.value.get());
  if (list == nullptr) {
    return InvalidArgument(what, " is no list; it is ",
                           v.value == nullptr ? "an empty variant" : v.value->type_name());
  }
  if (dtype == DType::kInvalid || list->dtype() == dtype) return list;
  return InvalidArgument("Invalid data types; op elements ", dtype, " but list elements ",
                         list->dtype());
}

StatusOr<const TensorList*> ListInput(const KernelContext& ctx, int i, DType dtype) {
  if (ctx.input(i).rank() != 0) {
    return InvalidArgument("Input list must be a scalar, found shape ", ctx.input(i).shape());
  }
  return ListOf(ctx.input(i).scalar<Variant>(), dtype, "the input");
}

Status NoElement(std::string_view tried, int64_t index, const TensorList& list) {
  return InvalidArgument("Trying to ", tried, " element ", index, " in a list with ", list.size(),
                         " elements.");
}

Tensor ListTensor(TensorList list) {
  Tensor handle(DType::kVariant, Shape());
  handle.data<Variant>()->value = std::make_shared<TensorList>(std::move(list));
  return handle;
}

StatusOr<absl::Span<Variant>> ChangeLists(KernelContext& ctx) {
  Tensor handles = ctx.TakeInput(0);
  if (!handles.HasOneReference()) {
    TENON_ASSIGN_OR_RETURN(handles, handles.Copy());
  }
  for (Variant& v : handles.flat<Variant>()) {
    if (v.value.use_count() > 1) {
      v.value = std::make_shared<TensorList>(static_cast<const TensorList&>(*v.value));
    }
  }
  // What others did with a list before they let go of it comes before what is done now.
  std::atomic_thread_fence(std::memory_order_acquire);
  ctx.set_output(0, std::move(handles));
  return ctx.output(0).tensor.flat<Variant>();
}

TensorList& ChangedList(Variant& v) {
  // ChangeLists saw to it that it is not shared, and no list was made const.
  return const_cast<TensorList&>(static_cast<const TensorList&>(*v.value));
}

StatusOr<TensorList*> ChangeList(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const absl::Span<Variant> lists, ChangeLists(ctx));
  return &ChangedList(lists[0]);
}

StatusOr<PartialShape> ReadElementShape(const Tensor& t) {
  TENON_ASSIGN_OR_RETURN(const DimVector dims, ReadIntegers(t, "element_shape"));
  if (t.rank() == 0 && dims[0] == -1) return PartialShape();
  if (t.rank() == 1) return PartialShape::Create(dims);
  if (t.rank() > 1) {
    return InvalidArgument("element_shape: Shape must be at most rank 1 but is rank ", t.rank());
  }
  return InvalidArgument(
      "The only valid scalar shape tensor is the fully unknown shape specified as -1, found ",
      dims[0]);
}

StatusOr<PartialShape> MergedShape(const PartialShape& a, const PartialShape& b) {
  if (a.IsCompatibleWith(b)) return a.MergeWith(b);
  if (a.rank() != b.rank()) {
    return InvalidArgument("Incompatible ranks during merge: ", a.rank(), " vs. ", b.rank(),
                           ", of shapes ", a, " and ", b);
  }
  return InvalidArgument("Incompatible shapes during merge: ", a, " vs. ", b);
}

StatusOr<PartialShape> ElementShape(const KernelContext& ctx, const TensorList& list, int i) {
  TENON_ASSIGN_OR_RETURN(const PartialShape shape, ReadElementShape(ctx.input(i)));
  return MergedShape(shape, list.element_shape());
}

StatusOr<PartialShape> ElementShape(const ShapeContext& c, int i) {
  if (c.constant(i) != nullptr) return ReadElementShape(*c.constant(i));
  if (c.input(i).rank() != 1) return PartialShape();
  return c.ConstantShape(i);
}

}  // namespace tenon
