// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/base/interruption.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/tensor_list/tensor_list.h"
#include "ops/tensor_list/tensor_list_ops.h"

namespace tenon {
namespace {

/// Puts the parts one after the other into output 0, of shape `dims`, which they fill.
Status Join(KernelContext& ctx, const CountedVector<Tensor>& parts,
            absl::Span<const int64_t> dims) {
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, dims));
  int64_t at = 0;
  for (Tensor part : parts) {
    if (Interrupted()) break;
    part.Renew();
    CopyElements(part, 0, out, at, part.num_elements());
    at += part.num_elements();
  }
  return OkStatus();
}

/// Why the shape of elements is not known.
struct NoShapeTexts {
  const char *none, *none_set;  // of no elements, and of none that was ever set
};

/// Output 0 = the elements along a new first dimension. Input `shape_input` and the list say what
/// shape those have that were never set.
Status StackElements(KernelContext& ctx, const TensorList& list, CountedVector<Tensor> elements,
                     int shape_input, const NoShapeTexts& texts) {
  TENON_ASSIGN_OR_RETURN(PartialShape known, ElementShape(ctx, list, shape_input));
  bool all_set = true;
  for (const Tensor& element : elements) {
    all_set &= element.valid();
    if (!element.valid()) continue;
    TENON_ASSIGN_OR_RETURN(known, MergedShape(known, element.shape()));
  }
  if (!known.IsFullyKnown()) {
    return InvalidArgument(elements.empty() ? texts.none : texts.none_set, known);
  }
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(known.dims()));
  if (!all_set) {
    TENON_ASSIGN_OR_RETURN(const Tensor zeros, ZeroTensor(list.dtype(), shape));
    for (Tensor& element : elements) {
      if (!element.valid()) element = zeros;
    }
  }
  const auto count = static_cast<int64_t>(elements.size());
  return Join(ctx, elements, Concat({count}, shape.dims()));
}

Status ListStackKernel(KernelContext& ctx, DType element_dtype, int64_t num_elements) {
  TENON_ASSIGN_OR_RETURN(const TensorList* list, ListInput(ctx, 0, element_dtype));
  if (num_elements != -1 && list->size() != num_elements) {
    return InvalidArgument("Operation expected a list with ", num_elements,
                           " elements but got a list with ", list->size(), " elements.");
  }
  return StackElements(
      ctx, *list, list->elements(), 1,
      {"Tried to stack elements of an empty list with non-fully-defined element_shape: ",
       "Tried to stack list which only contains uninitialized tensors and has a non-fully-defined "
       "element_shape: "});
}

Status GatherKernel(KernelContext& ctx, DType element_dtype) {
  TENON_ASSIGN_OR_RETURN(const TensorList* list, ListInput(ctx, 0, element_dtype));
  TENON_ASSIGN_OR_RETURN(const IndexVector indices, ReadIndices(ctx.input(1), "indices"));
  CountedVector<Tensor> elements;
  for (const int64_t i : indices) {
    if (i < 0 || i >= list->size()) return NoElement("gather", i, *list);
    elements.push_back(list->elements()[i]);
  }
  return StackElements(
      ctx, *list, std::move(elements), 2,
      {"Tried to gather 0-elements from a list with non-fully-defined shape: ",
       "Tried to gather uninitialized tensors from a list with non-fully-defined element_shape: "});
}

/// What is known of the elements that are to be joined along their first dimension.
struct Rows {
  int64_t count = -1;  // of each element; -1: unknown
  PartialShape shape;  // of a row

  /// The rows of elements of a shape that is known in part.
  static StatusOr<Rows> Of(const PartialShape& element) {
    if (!element.rank_known()) return Rows();
    if (element.rank() > 0) return Rows{element.dim(0), element.Part(1)};
    return InvalidArgument(
        "Concat requires elements to be at least vectors, found scalars instead.");
  }

  /// Takes in what the elements tell that are set.
  Status Merge(const TensorList& list) {
    int64_t common = -1;
    bool differ = false;
    for (int64_t i = 0; i < list.size(); ++i) {
      const Tensor& element = list.elements()[i];
      if (!element.valid()) continue;
      if (element.rank() == 0) {
        return InvalidArgument("Concat saw a scalar shape at index ", i,
                               " but requires at least vectors.");
      }
      TENON_ASSIGN_OR_RETURN(const Rows rows, Of(element.shape()));
      TENON_ASSIGN_OR_RETURN(shape, MergedShape(shape, rows.shape));
      if (count != -1 && count != rows.count) {
        return InvalidArgument(
            "First entry of element_shape input does not match the first dim of list element at "
            "index: ",
            i, " Expected: ", count, " Actual: ", rows.count);
      }
      differ |= common != -1 && common != rows.count;
      common = rows.count;
    }
    if (count == -1 && !differ) count = common;
    return OkStatus();
  }
};

/// Outputs 0 and 1 = the elements one after the other, and how many rows each has: element i that
/// was never set leading_dims[i], if there is such an entry.
Status ConcatElements(KernelContext& ctx, const TensorList& list, Rows rows,
                      absl::Span<const int64_t> leading_dims) {
  TENON_RETURN_IF_ERROR(rows.Merge(list));
  if (!rows.shape.IsFullyKnown()) {
    return InvalidArgument(
        list.size() == 0 ? "All except the first dimension must be fully defined when concating an "
                           "empty tensor list. element_shape without it: "
                         : "Trying to concat list with only uninitialized tensors but "
                           "element_shape_except_first_dim is not fully defined: ",
        rows.shape);
  }
  TENON_ASSIGN_OR_RETURN(Tensor * lengths, ctx.AllocateOutput(1, {list.size()}));
  CountedVector<Tensor> parts = list.elements();
  int64_t total = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].valid()) {
      const int64_t count = i < leading_dims.size() ? leading_dims[i] : rows.count;
      if (count < 0 && i < leading_dims.size()) {
        return InvalidArgument("leading_dims[", i, "] must be at least 0, found ", count);
      }
      if (count < 0) {
        return InvalidArgument("List contains uninitialized tensor at index ", i,
                               " but leading_dims has only ", leading_dims.size(), " elements.");
      }
      TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(Concat({count}, rows.shape.dims())));
      TENON_ASSIGN_OR_RETURN(parts[i], ZeroTensor(list.dtype(), shape));
    }
    lengths->data<int64_t>()[i] = parts[i].dim(0);
    TENON_ASSIGN_OR_RETURN(total, AddSizes(total, parts[i].dim(0)));
  }
  return Join(ctx, parts, Concat({total}, rows.shape.dims()));
}

/// The attr of TensorListConcat.
Status CheckNotEmpty(const PartialShape& element_shape) {
  if (element_shape.rank() != 0) return OkStatus();
  return InvalidArgument("element_shape must not be empty");
}

Status ConcatKernel(KernelContext& ctx, DType element_dtype, const PartialShape& element_shape) {
  TENON_ASSIGN_OR_RETURN(const TensorList* list, ListInput(ctx, 0, element_dtype));
  TENON_RETURN_IF_ERROR(CheckNotEmpty(element_shape));
  TENON_ASSIGN_OR_RETURN(Rows rows, Rows::Of(element_shape));
  rows.count = -1;  // as TensorFlow has it
  return ConcatElements(ctx, *list, std::move(rows), {});
}

Status ConcatV2Kernel(KernelContext& ctx, DType element_dtype) {
  TENON_ASSIGN_OR_RETURN(const TensorList* list, ListInput(ctx, 0, element_dtype));
  TENON_ASSIGN_OR_RETURN(const PartialShape shape, ElementShape(ctx, *list, 1));
  TENON_ASSIGN_OR_RETURN(Rows rows, Rows::Of(shape));
  return ConcatElements(ctx, *list, std::move(rows), ctx.input(2).flat<int64_t>());
}

Status CheckVectorOrHigher(const Tensor& t) {
  if (t.rank() >= 1) return OkStatus();
  return InvalidArgument("Tensor must be at least a vector, but saw shape: ", t.shape());
}

/// The list whose element shape input `i` says, once slices of input 0 fit it.
StatusOr<TensorList> ListOfSlices(const KernelContext& ctx, int i) {
  const Tensor& tensor = ctx.input(0);
  TENON_RETURN_IF_ERROR(CheckVectorOrHigher(tensor));
  TENON_ASSIGN_OR_RETURN(PartialShape shape, ReadElementShape(ctx.input(i)));
  TensorList list(tensor.dtype(), std::move(shape));
  TENON_RETURN_IF_ERROR(list.CheckShape(tensor.shape().WithoutDim(0),
                                        "make a list of a tensor with incompatible shape"));
  return list;
}

/// Sets element indices[k] to slice k of `tensor`, as a copy, so that an element does not keep all
/// of the tensor in memory.
Status SetSlices(const Tensor& tensor, absl::Span<const int64_t> indices, TensorList* list) {
  const Shape shape = tensor.shape().WithoutDim(0);
  for (size_t k = 0; k < indices.size() && !Interrupted(); ++k) {
    const auto row = static_cast<int64_t>(k);
    TENON_ASSIGN_OR_RETURN(const Tensor slice, tensor.Slice(row, row + 1).Copy());
    TENON_ASSIGN_OR_RETURN(Tensor element, slice.Reshaped(shape));
    TENON_RETURN_IF_ERROR(list->Set(indices[k], std::move(element)));
  }
  return OkStatus();
}

Status FromTensorKernel(KernelContext& ctx, const Tensor& tensor) {
  TENON_ASSIGN_OR_RETURN(TensorList list, ListOfSlices(ctx, 1));
  list.Resize(tensor.dim(0));
  CountedVector<int64_t> all(tensor.dim(0));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  TENON_RETURN_IF_ERROR(SetSlices(tensor, all, &list));
  return ctx.Return(ListTensor(std::move(list)));
}

/// Input `i` as one index not below 0 for each slice of `tensor`, and the largest + 1.
StatusOr<std::pair<IndexVector, int64_t>> IndicesOf(const KernelContext& ctx, int i,
                                                    const Tensor& tensor) {
  TENON_ASSIGN_OR_RETURN(IndexVector indices, ReadIndices(ctx.input(i), "indices"));
  if (static_cast<int64_t>(indices.size()) != tensor.dim(0)) {
    return InvalidArgument("Invalid number of rows in input tensor. Expected: ", indices.size(),
                           " Actual: ", tensor.dim(0));
  }
  int64_t end = 0;
  for (const int64_t index : indices) {
    if (index < 0) {
      return InvalidArgument("Indices in TensorListScatter must all be non-negative. Found ",
                             index);
    }
    end = std::max(end, index + 1);
  }
  return std::make_pair(std::move(indices), end);
}

Status ScatterKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(TensorList list, ListOfSlices(ctx, 2));
  TENON_ASSIGN_OR_RETURN(const auto indices, IndicesOf(ctx, 1, ctx.input(0)));
  int64_t size = -1;
  if (ctx.num_inputs() > 3) {
    TENON_ASSIGN_OR_RETURN(size, ReadInteger(ctx.input(3), "num_elements"));
  }
  if (size < -1) {
    return InvalidArgument("TensorListScatter expects num_elements >= -1, found: ", size);
  }
  if (size != -1 && indices.second > size) {
    return InvalidArgument("TensorListScatter: Trying to scatter at index ", indices.second - 1,
                           " in list with size ", size);
  }
  list.Resize(std::max(size, indices.second));
  TENON_RETURN_IF_ERROR(SetSlices(ctx.input(0), indices.first, &list));
  return ctx.Return(ListTensor(std::move(list)));
}

Status ScatterIntoKernel(KernelContext& ctx, DType element_dtype) {
  const Tensor& tensor = ctx.input(1);
  TENON_ASSIGN_OR_RETURN(const TensorList* list, ListInput(ctx, 0, element_dtype));
  TENON_RETURN_IF_ERROR(CheckVectorOrHigher(tensor));
  TENON_RETURN_IF_ERROR(CheckRank(ctx.input(2), 1, "indices"));
  TENON_RETURN_IF_ERROR(list->CheckShape(tensor.shape().WithoutDim(0),
                                         "scatter a tensor with incompatible shape into a list"));
  TENON_ASSIGN_OR_RETURN(const auto indices, IndicesOf(ctx, 2, tensor));
  TENON_ASSIGN_OR_RETURN(TensorList * changed, ChangeList(ctx));
  changed->Resize(std::max(changed->size(), indices.second));
  return SetSlices(tensor, indices.first, changed);
}

Status SplitKernel(KernelContext& ctx, const Tensor& tensor) {
  TENON_RETURN_IF_ERROR(CheckVectorOrHigher(tensor));
  TENON_ASSIGN_OR_RETURN(PartialShape shape, ReadElementShape(ctx.input(1)));
  if (shape.rank() == 0) {
    return InvalidArgument(
        "TensorListSplit requires element_shape to be at least of rank 1, but saw: ", shape);
  }
  TENON_ASSIGN_OR_RETURN(const Rows rows, Rows::Of(shape));
  if (!rows.shape.IsCompatibleWith(tensor.shape().WithoutDim(0))) {
    return InvalidArgument("tensor shape ", tensor.shape(),
                           " is not compatible with element_shape ", shape);
  }
  TensorList list(tensor.dtype(), std::move(shape));
  int64_t begin = 0;
  for (const int64_t length : ctx.input(2).flat<int64_t>()) {
    if (length < 0) return InvalidArgument("Invalid value in lengths: ", length);
    if (length > tensor.dim(0) - begin) {
      const uint64_t end = static_cast<uint64_t>(begin) + static_cast<uint64_t>(length);
      return InvalidArgument("Attempting to slice [", begin, ", ", end,
                             "] from tensor with length ", tensor.dim(0));
    }
    TENON_ASSIGN_OR_RETURN(Tensor part, tensor.Slice(begin, begin + length).Copy());
    TENON_RETURN_IF_ERROR(list.Append(std::move(part)));
    begin += length;
  }
  if (begin == tensor.dim(0)) return ctx.Return(ListTensor(std::move(list)));
  return InvalidArgument("Unused values in tensor. Length of tensor: ", tensor.dim(0),
                         " Values used: ", begin);
}

Status StackShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape element, ElementShape(c, 1));
  TENON_ASSIGN_OR_RETURN(const int64_t count, c.Attr<int64_t>("num_elements"));
  return c.Return(element.WithInsertedDim(0, count < 0 ? PartialShape::kUnknownDim : count));
}

Status GatherShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape element, ElementShape(c, 2));
  const int64_t count = c.input(1).num_elements().value_or(PartialShape::kUnknownDim);
  return c.Return(element.WithInsertedDim(0, count));
}

/// The result of elements of shape `element`, joined.
Status JoinedShape(ShapeContext& c, const PartialShape& element) {
  c.set_output(1, PartialShape::OfRank(1));
  TENON_ASSIGN_OR_RETURN(const Rows rows, Rows::Of(element));
  return c.Return(rows.shape.WithInsertedDim(0, PartialShape::kUnknownDim));
}

Status ConcatShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape element, c.Attr<PartialShape>("element_shape"));
  TENON_RETURN_IF_ERROR(CheckNotEmpty(element));
  return JoinedShape(c, element);
}

Status ConcatV2Shape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape element, ElementShape(c, 1));
  return JoinedShape(c, element);
}

Output Int32ElementShape(const Output& list) { return TensorListElementShape(list, DType::kInt32); }

/// The shape of the slices of `x`.
Output SliceShape(const Output& x) { return Slice(ShapeOf(x), {1}, {-1}); }

void StackGrad(GradContext& g) { g.dx(0) = TensorListFromTensor(g.dy(0), SliceShape(g.dy(0))); }

void ListGatherGrad(GradContext& g) {
  const Output list = g.in(0);
  const Output zeros = TensorListReserve(Int32ElementShape(list), TensorListLength(list),
                                         g.Attr<DType>("element_dtype"));
  g.dx(0) = TensorListScatterIntoExistingList(zeros, g.dy(0), g.in(1));
}

void ListConcatGrad(GradContext& g) {
  if (!g.dy(0).exists()) return;
  g.dx(0) = TensorListSplit(g.dy(0), Int32ElementShape(g.in(0)), g.out(1));
}

void ListSplitGrad(GradContext& g) {
  const Output tensor = g.in(0);
  const Output shape = ConcatV2({Const({-1}), SliceShape(tensor)}, 0);
  g.dx(0) = TensorListConcatV2(g.dy(0), shape, g.in(2), tensor.dtype()).tensor;
}

void FromTensorGrad(GradContext& g) {
  const Output tensor = g.in(0);
  g.dx(0) = TensorListStack(g.dy(0), SliceShape(tensor), tensor.dtype());
}

void ListScatterGrad(GradContext& g) {
  const Output tensor = g.in(0);
  g.dx(0) = TensorListGather(g.dy(0), g.in(1), SliceShape(tensor), tensor.dtype());
}

void ScatterIntoGrad(GradContext& g) {
  const Output tensor = g.in(1), indices = g.in(2);
  g.dx(1) = TensorListGather(g.dy(0), indices, SliceShape(tensor), tensor.dtype());
  g.dx(0) = TensorListScatterIntoExistingList(g.dy(0), ZerosLike(tensor), indices);
}

/// A list of two vectors, for examples.
Tensor VectorList() {
  TensorList list(DType::kFloat, PartialShape{-1});
  for (const float x : {1.0f, 3.0f}) TENON_CHECK(list.Append(Tensor::Vector({x, x + 1})).ok());
  return ListTensor(std::move(list));
}

}  // namespace

void RegisterWholeTensorLists(OpRegistry& ops) {
  const KernelOptions typed = {.attrs = {"element_dtype"}, .memory = kHostMemory};
  const KernelOptions untyped = {.memory = kHostMemory};
  const AttributeMap of_float = {{"element_dtype", DType::kFloat}};
  const Tensor list = VectorList(), shape = Tensor::Vector({2}), indices = Tensor::Vector({1, 0});
  const Tensor lengths = Tensor::Vector<int64_t>({1, 2});
  ops.Add("TensorListStack", StackShape, ListStackKernel,
          {.attrs = {"element_dtype", "num_elements"}, .memory = kHostMemory})
      .Grad(StackGrad)
      .Example({list, shape}, of_float);
  ops.Add("TensorListGather", GatherShape, GatherKernel, typed)
      .Grad(ListGatherGrad)
      .Example({list, indices, shape}, of_float);
  ops.Add("TensorListConcat", ConcatShape, ConcatKernel,
          {.attrs = {"element_dtype", "element_shape"}, .memory = kHostMemory})
      .Grad(ListConcatGrad)
      .Example({list}, of_float);
  ops.Add("TensorListConcatV2", ConcatV2Shape, ConcatV2Kernel, typed)
      .Grad(ListConcatGrad)
      .Example({list, shape, lengths}, of_float);
  ops.Add("TensorListSplit", ScalarShape, SplitKernel, untyped)
      .Grad(ListSplitGrad)
      .Example({Shape{3, 2}, Tensor::Vector({-1, 2}), lengths});
  ops.Add("TensorListFromTensor", ScalarShape, FromTensorKernel, untyped)
      .Grad(FromTensorGrad)
      .Example({Shape{3, 2}, shape});
  ops.Add("TensorListScatter", ScalarShape, ScatterKernel, untyped)
      .Grad(ListScatterGrad)
      .Example({Shape{2, 2}, indices, shape});
  ops.Add("TensorListScatterV2", ScalarShape, ScatterKernel, untyped)
      .Grad(ListScatterGrad)
      .Example({Shape{2, 2}, indices, shape, Tensor::Scalar(4)});
  ops.Add("TensorListScatterIntoExistingList", ScalarShape, ScatterIntoKernel, typed)
      .Grad(ScatterIntoGrad)
      .Example({list, Shape{2, 2}, indices}, of_float);
}

}  // namespace tenon
