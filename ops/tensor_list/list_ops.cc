// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/tensor_list/tensor_list.h"
#include "ops/tensor_list/tensor_list_ops.h"

namespace tenon {
namespace {

Status EmptyKernel(KernelContext& ctx, DType element_dtype) {
  TENON_ASSIGN_OR_RETURN(PartialShape shape, ReadElementShape(ctx.input(0)));
  TENON_ASSIGN_OR_RETURN(const int64_t limit, ReadInteger(ctx.input(1), "max_num_elements"));
  return ctx.Return(ListTensor(TensorList(element_dtype, std::move(shape), limit)));
}

Status ReserveKernel(KernelContext& ctx, DType element_dtype) {
  TENON_ASSIGN_OR_RETURN(PartialShape shape, ReadElementShape(ctx.input(0)));
  TENON_ASSIGN_OR_RETURN(const int64_t size, ReadInteger(ctx.input(1), "num_elements"));
  if (size < 0) {
    return InvalidArgument("The num_elements to reserve must be a non negative number, but got ",
                           size);
  }
  TensorList list(element_dtype, std::move(shape));
  list.Resize(size);
  return ctx.Return(ListTensor(std::move(list)));
}

Status LengthKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const TensorList* list, ListInput(ctx, 0));
  return ctx.Return(Tensor::Scalar(static_cast<int32_t>(list->size())));
}

Status ElementShapeKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const TensorList* list, ListInput(ctx, 0));
  const PartialShape& shape = list->element_shape();
  const bool known = shape.rank_known();
  TENON_ASSIGN_OR_RETURN(Tensor * out,
                         ctx.AllocateOutput(0, known ? Shape{shape.rank()} : Shape()));
  WriteIntegers(known ? shape.dims() : absl::Span<const int64_t>({-1}), out);
  return OkStatus();
}

Status PushBackKernel(KernelContext& ctx, DType element_dtype) {
  const Tensor element = ctx.TakeInput(1);
  TENON_ASSIGN_OR_RETURN(const TensorList* list, ListInput(ctx, 0, element_dtype));
  TENON_RETURN_IF_ERROR(
      list->CheckShape(element.shape(), "append a tensor with incompatible shape to a list"));
  if (list->limit() != TensorList::kNoLimit && list->size() >= list->limit()) {
    return InvalidArgument("Tried to push item into a full list, list size: ", list->size(),
                           " max_num_elements: ", list->limit());
  }
  TENON_ASSIGN_OR_RETURN(TensorList * changed, ChangeList(ctx));
  return changed->Append(element);
}

Status PushBackBatchKernel(KernelContext& ctx, const Tensor& handles, DType element_dtype) {
  const Tensor rows = ctx.input(1);
  TENON_RETURN_IF_ERROR(CheckRank(handles, 1, "input_handles"));
  if (rows.rank() < 1 || rows.dim(0) != handles.dim(0)) {
    return InvalidArgument("Expected tensor.shape[0] == input_handles.size, but saw ", rows.shape(),
                           " vs. ", handles.shape());
  }
  const Shape shape = rows.shape().WithoutDim(0);
  for (int64_t i = 0; i < rows.dim(0); ++i) {
    TENON_ASSIGN_OR_RETURN(const TensorList* list, ListOf(handles.data<Variant>()[i], element_dtype,
                                                          StrCat("Input handle at index ", i)));
    TENON_RETURN_IF_ERROR(list->CheckShape(
        shape, StrCat("append a tensor with incompatible shape to a list at index ", i)));
  }
  TENON_ASSIGN_OR_RETURN(const absl::Span<Variant> lists, ChangeLists(ctx));
  for (int64_t i = 0; i < rows.dim(0); ++i) {
    TENON_ASSIGN_OR_RETURN(const Tensor row, rows.Slice(i, i + 1).Copy());
    TENON_ASSIGN_OR_RETURN(Tensor element, row.Reshaped(shape));
    TENON_RETURN_IF_ERROR(ChangedList(lists[i]).Append(std::move(element)));
  }
  return OkStatus();
}

/// An element as it is read: zeros when it was never set, whose shape must be known.
StatusOr<Tensor> ReadElement(const TensorList& list, const Tensor& element,
                             const PartialShape& shape) {
  if (element.valid()) return element;
  if (!shape.IsFullyKnown()) {
    return InvalidArgument(
        "Trying to read an uninitialized tensor but element_shape is not fully defined: ", shape);
  }
  return ZeroTensor(list.dtype(), shape.ToShape());
}

Status PopBackKernel(KernelContext& ctx, DType element_dtype) {
  TENON_ASSIGN_OR_RETURN(const TensorList* list, ListInput(ctx, 0, element_dtype));
  if (list->size() == 0) return InvalidArgument("Trying to pop from an empty list.");
  TENON_ASSIGN_OR_RETURN(const PartialShape shape, ElementShape(ctx, *list, 1));
  TENON_ASSIGN_OR_RETURN(Tensor element, ReadElement(*list, list->elements().back(), shape));
  ctx.set_output(1, std::move(element));
  TENON_ASSIGN_OR_RETURN(TensorList * changed, ChangeList(ctx));
  changed->PopBack();
  return OkStatus();
}

Status GetItemKernel(KernelContext& ctx, const Tensor&, Integer index, DType element_dtype) {
  TENON_ASSIGN_OR_RETURN(const TensorList* list, ListInput(ctx, 0, element_dtype));
  if (index < 0 || index >= list->size()) return NoElement("access", index, *list);
  const Tensor& element = list->elements()[index];
  if (element.valid()) return ctx.Return(element);
  TENON_ASSIGN_OR_RETURN(PartialShape shape, ElementShape(ctx, *list, 2));
  for (const Tensor& other : list->elements()) {
    if (shape.IsFullyKnown()) break;
    if (!other.valid()) continue;
    TENON_ASSIGN_OR_RETURN(shape, MergedShape(shape, other.shape()));
  }
  return ctx.Return(ReadElement(*list, element, shape));
}

Status SetItemKernel(KernelContext& ctx, DType element_dtype, bool grows) {
  TENON_ASSIGN_OR_RETURN(const TensorList* list, ListInput(ctx, 0, element_dtype));
  TENON_ASSIGN_OR_RETURN(const int64_t index, ReadInteger(ctx.input(1), "index"));
  const int64_t size = list->size();
  if (index < 0 || (index >= size && !grows)) return NoElement("modify", index, *list);
  TENON_RETURN_IF_ERROR(list->CheckShape(ctx.input(2).shape(),
                                         "set a tensor with incompatible shape at a list index"));
  TENON_ASSIGN_OR_RETURN(TensorList * changed, ChangeList(ctx));
  if (index >= size) changed->Resize(index + 1);
  return changed->Set(index, ctx.TakeInput(2));
}

Status ResizeKernel(KernelContext& ctx, const Tensor&, Integer size) {
  TENON_RETURN_IF_ERROR(ListInput(ctx, 0).status());
  if (size < 0)
    return InvalidArgument("TensorListSlice expects size to be non-negative. Got: ", size.value);
  TENON_ASSIGN_OR_RETURN(TensorList * changed, ChangeList(ctx));
  changed->Resize(size);
  return OkStatus();
}

/// The list that `v`, which messages call `what`, holds.
StatusOr<const TensorList*> ListToConcat(const Variant& v, DType dtype, std::string_view what) {
  TENON_ASSIGN_OR_RETURN(const TensorList* list, ListOf(v, DType::kInvalid, what));
  if (list->dtype() == dtype) return list;
  return InvalidArgument(what, ".dtype != element_dtype: ", list->dtype(), " vs. ", dtype);
}

Status ConcatListsKernel(KernelContext& ctx, DType element_dtype) {
  TENON_RETURN_IF_ERROR(CheckSameShape(ctx));
  const Tensor more = ctx.input(1);
  const auto others = more.flat<Variant>();
  for (size_t i = 0; i < others.size(); ++i) {
    TENON_ASSIGN_OR_RETURN(
        const TensorList* a,
        ListToConcat(ctx.input(0).data<Variant>()[i], element_dtype, StrCat("input_a[", i, "]")));
    TENON_ASSIGN_OR_RETURN(const TensorList* b,
                           ListToConcat(others[i], element_dtype, StrCat("input_b[", i, "]")));
    if (a->element_shape() == b->element_shape()) continue;
    return InvalidArgument(
        "input_a and input_b TensorList element shapes are not identical at index ", i, ": ",
        a->element_shape(), " vs. ", b->element_shape());
  }
  TENON_ASSIGN_OR_RETURN(const absl::Span<Variant> lists, ChangeLists(ctx));
  for (size_t i = 0; i < others.size(); ++i) {
    for (const Tensor& element : static_cast<const TensorList&>(*others[i].value).elements()) {
      TENON_RETURN_IF_ERROR(ChangedList(lists[i]).Append(element));
    }
  }
  return OkStatus();
}

// What a reader says of an element's shape counts only where that was never set.
Status PopBackShape(ShapeContext& c) {
  c.set_output(0, Shape());
  return OkStatus();
}

Status PushBackBatchShape(ShapeContext& c) { return c.Return(c.WithRank(0, 1)); }

Status ConcatListsShape(ShapeContext& c) { return c.Return(c.Merged()); }

/// The shape that the elements of `list` fit, as an int32 tensor.
Output ElementShapeOf(const Output& list) { return TensorListElementShape(list, DType::kInt32); }

DType ElementType(const GradContext& g) { return g.Attr<DType>("element_dtype"); }

void PushBackGrad(GradContext& g) {
  const auto [list, element] = TensorListPopBack(g.dy(0), ShapeVector(g.in(1)), ElementType(g));
  g.dx(0) = list;
  g.dx(1) = element;
}

/// A list like `list`, of zeros.
Output ZerosOf(const GradContext& g, const Output& list) {
  return TensorListReserve(ElementShapeOf(list), TensorListLength(list), ElementType(g));
}

void PopBackGrad(GradContext& g) {
  const Output list = g.dy(0).exists() ? g.dy(0) : ZerosOf(g, g.out(0));
  g.dx(0) = TensorListPushBack(list, DysOrZeros(g)[1]);
}

void GetItemGrad(GradContext& g) {
  g.dx(0) = TensorListSetItem(ZerosOf(g, g.in(0)), g.in(1), g.dy(0));
}

void SetItemGrad(GradContext& g) {
  const Output item = g.in(2);
  g.dx(0) = TensorListSetItem(g.dy(0), g.in(1), ZerosLike(item));
  g.dx(2) = TensorListGetItem(g.dy(0), g.in(1), ShapeVector(item), item.dtype());
  if (!g.Attr<bool>("resize_if_index_out_of_bounds")) return;
  g.dx(0) = TensorListResize(g.dx(0), TensorListLength(g.in(0)));
}

void ResizeGrad(GradContext& g) { g.dx(0) = TensorListResize(g.dy(0), TensorListLength(g.in(0))); }

/// A list of two vectors, for examples.
Tensor ExampleList() {
  TensorList list(DType::kFloat, PartialShape{2});
  for (const float x : {1.0f, 3.0f}) TENON_CHECK(list.Append(Tensor::Vector({x, x + 1})).ok());
  return ListTensor(std::move(list));
}

}  // namespace

void RegisterTensorLists(OpRegistry& ops) {
  const KernelOptions typed = {.attrs = {"element_dtype"}, .cheap = true, .memory = kHostMemory},
                      untyped = {.cheap = true, .memory = kHostMemory};
  const AttributeMap of_float = {{"element_dtype", DType::kFloat}};
  const Tensor list = ExampleList(), shape = Tensor::Vector({2}), one = Tensor::Scalar(1);
  const Tensor lists = list.Reshaped({1}).value();
  ops.Add("EmptyTensorList", ScalarShape, EmptyKernel, typed).Example({shape, one}, of_float);
  ops.Add("TensorListReserve", ScalarShape, ReserveKernel, typed).Example({shape, one}, of_float);
  ops.Add("TensorListLength", ScalarShape, LengthKernel, untyped).Example({list});
  ops.Add("TensorListElementShape", UnknownShape, ElementShapeKernel, untyped).Example({list});
  ops.Add("TensorListPushBack", ScalarShape, PushBackKernel, typed)
      .Grad(PushBackGrad)
      .Example({list, Shape{2}}, of_float);
  ops.Add("TensorListPushBackBatch", PushBackBatchShape, PushBackBatchKernel, typed)
      .Example({lists, Shape{1, 2}}, of_float);
  ops.Add("TensorListPopBack", PopBackShape, PopBackKernel, typed)
      .Grad(PopBackGrad)
      .Example({list, shape}, of_float);
  ops.Add("TensorListGetItem", UnknownShape, GetItemKernel, typed)
      .Grad(GetItemGrad)
      .Example({list, one, shape}, of_float);
  ops.Add("TensorListSetItem", ScalarShape, SetItemKernel,
          {.attrs = {"element_dtype", "resize_if_index_out_of_bounds"},
           .cheap = true,
           .memory = kHostMemory})
      .Grad(SetItemGrad)
      .Example({list, one, Shape{2}}, of_float);
  ops.Add("TensorListResize", ScalarShape, ResizeKernel, untyped)
      .Grad(ResizeGrad)
      .Example({list, Tensor::Scalar(3)});
  ops.Add("TensorListConcatLists", ConcatListsShape, ConcatListsKernel, typed)
      .Example({lists, lists}, of_float);
}

}  // namespace tenon
