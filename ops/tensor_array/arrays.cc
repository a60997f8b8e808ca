// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "core/base/interruption.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/tensor_array/array_writes.h"
#include "ops/tensor_array/step_resource.h"
#include "ops/tensor_array/tensor_array.h"

namespace tenon {
namespace {

StatusOr<std::shared_ptr<TensorArray>> ArrayInput(const KernelContext& ctx) {
  return StepResourceInput<TensorArray>(ctx);
}

/// What an op hands on of the flow that it got in input `i`. It only orders the ops on an array:
/// nobody looks into it, but a step may have fed one that is no scalar.
StatusOr<Tensor> FlowFrom(KernelContext& ctx, int i) {
  Tensor flow = ctx.TakeInput(i);
  if (flow.rank() == 0) return flow;
  return ZerosOnDevice(ctx, DType::kFloat, Shape());
}

Status ReturnFlow(KernelContext& ctx) { return ctx.Return(FlowFrom(ctx, ctx.num_inputs() - 1)); }

struct OptionsOfArrays : KernelState {
  explicit OptionsOfArrays(KernelConstruction& c)
      : value{.dtype = c.Attr<DType>("dtype"),
              .element_shape = c.Attr<PartialShape>("element_shape"),
              .dynamic_size = c.Attr<bool>("dynamic_size"),
              .clear_after_read = c.Attr<bool>("clear_after_read"),
              .identical_shapes = c.attrs().GetOr("identical_element_shapes", false)} {}
  const TensorArray::Options value;
};

Status CreateKernel(KernelContext& ctx, Integer size, const NodeName& node,
                    const OptionsOfArrays& options, const std::string& tensor_array_name) {
  if (size < 0 || size > TensorArray::kMaxSize) {
    return InvalidArgument("TensorArray size must be in [0, 2^28], found ", size.value);
  }
  const std::string unique = UniqueName(tensor_array_name, node.value);
  if (ctx.num_outputs() > 1) {
    TENON_ASSIGN_OR_RETURN(Tensor flow, ZerosOnDevice(ctx, DType::kFloat, Shape()));
    ctx.set_output(1, std::move(flow));
  }
  return ctx.Return(StepResourceHandle<TensorArray>(
      ctx, unique, [&] { return std::make_shared<TensorArray>(unique, options.value, size); }));
}

Status GradKernel(KernelContext& ctx, const std::string& source) {
  TENON_ASSIGN_OR_RETURN(const auto array, ArrayInput(ctx));
  Shape prefix;
  if (ctx.num_inputs() > 2) {
    TENON_ASSIGN_OR_RETURN(prefix, ReadShape(ctx.input(2), "shape_to_prepend"));
  }
  const std::string name = StrCat(array->name(), "@", source);
  if (ctx.num_outputs() > 1) {
    TENON_ASSIGN_OR_RETURN(Tensor flow, FlowFrom(ctx, 1));
    ctx.set_output(1, std::move(flow));
  }
  return ctx.Return(StepResourceHandle<TensorArray>(
      ctx, name, [&] { return array->MakeGradient(name, prefix); }));
}

StatusOr<std::shared_ptr<TensorArray>> ReadableArray(const KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(auto array, ArrayInput(ctx));
  if (array->dtype() == ctx.output_type(0)) return array;
  return InvalidArgument("TensorArray dtype is ", array->dtype(), " but Op requested dtype ",
                         ctx.output_type(0), ".");
}

Status ReadKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto array, ReadableArray(ctx));
  TENON_ASSIGN_OR_RETURN(const int64_t index, ReadInteger(ctx.input(1), "index"));
  return ctx.Return(array->Read(ctx, index));
}

/// Puts the elements one after the other, as [rows] and then `rest`, which they fill.
Status JoinElements(KernelContext& ctx, absl::Span<const Tensor> elements, int64_t rows,
                    absl::Span<const int64_t> rest) {
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, Concat({rows}, rest)));
  int64_t at = 0;
  for (const Tensor& e : elements) {
    if (Interrupted()) break;
    CopyInMemory(e, 0, out, at, e.num_elements());
    at += e.num_elements();
  }
  return OkStatus();
}

/// The elements are none, so that there is none to tell the shape.
Status GatherNothing(KernelContext& ctx, const TensorArray& array, const PartialShape& attr) {
  TENON_ASSIGN_OR_RETURN(const PartialShape shape, array.ElementShape(attr));
  if (shape.IsFullyKnown()) return JoinElements(ctx, {}, 0, shape.dims());
  return Unimplemented("TensorArray has size zero, but element shape ", shape,
                       " is not fully defined. Currently only static shapes are supported when "
                       "packing zero-size TensorArrays.");
}

/// 0, 1, ..., n - 1.
DimVector FirstIntegers(int64_t n) {
  DimVector integers(n);
  std::iota(integers.begin(), integers.end(), 0);
  return integers;
}

/// With kAll there are no indices: all elements.
template <bool kAll>
Status GatherKernel(KernelContext& ctx, const PartialShape& element_shape) {
  TENON_ASSIGN_OR_RETURN(const auto array, ReadableArray(ctx));
  TENON_ASSIGN_OR_RETURN(const int64_t size, array->JoinedSize());
  DimVector indices = FirstIntegers(kAll ? size : 0);
  if constexpr (!kAll) {
    TENON_ASSIGN_OR_RETURN(indices, ReadIntegerVector(ctx.input(1), "indices"));
  }
  if (indices.empty()) return GatherNothing(ctx, *array, element_shape);
  CountedVector<Tensor> elements;
  for (const int64_t i : indices) {
    if (Interrupted()) return OkStatus();
    TENON_ASSIGN_OR_RETURN(Tensor element, array->Read(ctx, i));
    elements.push_back(std::move(element));
    if (elements.back().shape() != elements[0].shape()) {
      return InvalidArgument("TensorArray has inconsistent shapes. Index ", indices[0],
                             " has shape: ", elements[0].shape(), " but index ", i,
                             " has shape: ", elements.back().shape());
    }
  }
  const Shape& shape = elements[0].shape();
  if (!element_shape.IsCompatibleWith(shape)) {
    return InvalidArgument("the elements have shape ", shape, ", wanted ", element_shape);
  }
  return JoinElements(ctx, elements, static_cast<int64_t>(elements.size()), shape.dims());
}

absl::Span<const int64_t> DimsExcept0(const Tensor& t) { return t.shape().dims().subspan(1); }

Status ConcatKernel(KernelContext& ctx, const PartialShape& rest) {
  TENON_ASSIGN_OR_RETURN(const auto array, ReadableArray(ctx));
  TENON_ASSIGN_OR_RETURN(const int64_t size, array->JoinedSize());
  if (size == 0 && !rest.IsFullyKnown()) {
    return Unimplemented("TensorArray has size zero, but element_shape_except0 ", rest,
                         " is not fully defined.");
  }
  CountedVector<Tensor> elements;
  TENON_ASSIGN_OR_RETURN(Tensor lengths, Tensor::Allocate(CpuAllocator(), DType::kInt64, {size}));
  int64_t rows = 0;
  for (int64_t i = 0; i < size; ++i) {
    if (Interrupted()) return OkStatus();
    TENON_ASSIGN_OR_RETURN(Tensor element, array->Read(ctx, i));
    if (element.rank() == 0) {
      return InvalidArgument("Concat saw a scalar shape at index ", i,
                             " but requires at least vectors.");
    }
    elements.push_back(std::move(element));
    if (DimsExcept0(elements[i]) != DimsExcept0(elements[0])) {
      return InvalidArgument(
          "TensorArray has inconsistent shapes. Index 0 has (excepting dimension 0) shape: ",
          PartialShape(DimsExcept0(elements[0])), " but index ", i,
          " has shape: ", elements[i].shape());
    }
    lengths.data<int64_t>()[i] = elements[i].dim(0);
    TENON_ASSIGN_OR_RETURN(rows, AddSizes(rows, elements[i].dim(0)));
  }
  ctx.set_output(1, std::move(lengths));
  return JoinElements(ctx, elements, rows, size == 0 ? rest.dims() : DimsExcept0(elements[0]));
}

Status SizeKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto array, ArrayInput(ctx));
  TENON_ASSIGN_OR_RETURN(const int64_t size, array->Size());
  return ctx.Return(Tensor::Scalar(static_cast<int32_t>(size)));
}

Status CloseKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto array, ArrayInput(ctx));
  array->Close();
  return OkStatus();
}

// What is written is copied, so that an element does not keep all of the value in memory.

/// With kAll there are no indices: all elements.
template <bool kAll>
Status Scatter(KernelContext& ctx, AddTensors add) {
  TENON_ASSIGN_OR_RETURN(const auto array, ArrayInput(ctx));
  const Tensor& value = ctx.input(kAll ? 1 : 2);
  if (value.rank() < 1)
    return InvalidArgument("Input value for unpack must be at least a vector but received shape: ",
                           value.shape());
  DimVector indices;
  if constexpr (kAll) {
    TENON_RETURN_IF_ERROR(array->Grow(value.dim(0)));
    TENON_ASSIGN_OR_RETURN(const int64_t size, array->Size());
    if (size != value.dim(0)) {
      return InvalidArgument("Input value must have first dimension equal to the array size (",
                             value.dim(0), " vs. ", size, ")");
    }
    array->MarkSize();
    indices = FirstIntegers(size);
  } else {
    TENON_ASSIGN_OR_RETURN(indices, ReadIntegerVector(ctx.input(1), "indices"));
  }
  if (value.dim(0) != static_cast<int64_t>(indices.size())) {
    return InvalidArgument("Expected len(indices) == values.shape[0], but saw: ", indices.size(),
                           " vs. ", value.dim(0));
  }
  const Shape shape = value.shape().WithoutDim(0);
  for (int64_t i = 0; i < value.dim(0); ++i) {
    TENON_ASSIGN_OR_RETURN(const Tensor row, value.Slice(i, i + 1).Copy());
    TENON_ASSIGN_OR_RETURN(Tensor element, row.Reshaped(shape));
    TENON_RETURN_IF_ERROR(array->Write(ctx, indices[i], std::move(element), add));
  }
  return ReturnFlow(ctx);
}

template <Status (*kWrite)(KernelContext&, AddTensors)>
Status WriteOnHost(KernelContext& ctx) {
  return kWrite(ctx, AddOnHost);
}

Status GatherShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape element, c.Attr<PartialShape>("element_shape"));
  TENON_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRank(1, 1));
  return c.Return(element.WithInsertedDim(0, indices.dim(0)));
}

Status PackShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape element, c.Attr<PartialShape>("element_shape"));
  return c.Return(element.WithInsertedDim(0, PartialShape::kUnknownDim));
}

/// The shape function of ops that give container and name.
Status NameShape(ShapeContext& c) { return c.Return(PartialShape{2}); }

}  // namespace

Status WriteToArray(KernelContext& ctx, AddTensors add) {
  TENON_ASSIGN_OR_RETURN(const auto array, ArrayInput(ctx));
  TENON_ASSIGN_OR_RETURN(const int64_t index, ReadInteger(ctx.input(1), "index"));
  TENON_RETURN_IF_ERROR(array->Write(ctx, index, ctx.TakeInput(2), add));
  return ReturnFlow(ctx);
}

Status ScatterToArray(KernelContext& ctx, AddTensors add) { return Scatter<false>(ctx, add); }

Status SplitToArray(KernelContext& ctx, AddTensors add) {
  TENON_ASSIGN_OR_RETURN(const auto array, ArrayInput(ctx));
  const Tensor& value = ctx.input(1);
  if (ctx.input(2).rank() != 1) {
    return InvalidArgument("Expected lengths to be a vector, received shape: ",
                           ctx.input(2).shape());
  }
  TENON_ASSIGN_OR_RETURN(const DimVector lengths, ReadIntegers(ctx.input(2), "lengths"));
  if (value.rank() < 1) {
    return InvalidArgument("Expected value to be at least a vector, but received shape: ",
                           value.shape());
  }
  int64_t left = value.dim(0);  // -1 from a length on that is negative or too large
  for (const int64_t n : lengths) left = n < 0 || n > left ? -1 : left - n;
  if (left != 0) {
    return InvalidArgument(
        "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is ",
        Join(lengths, " + "), " and value's shape is: ", value.shape());
  }
  TENON_RETURN_IF_ERROR(array->Grow(static_cast<int64_t>(lengths.size())));
  TENON_ASSIGN_OR_RETURN(const int64_t size, array->Size());
  if (size != static_cast<int64_t>(lengths.size())) {
    return InvalidArgument("TensorArray's size is not equal to the size of lengths (", size,
                           " vs. ", lengths.size(),
                           "), and the TensorArray is not marked as dynamically resizeable");
  }
  array->MarkSize();
  int64_t at = 0;
  for (int64_t i = 0; i < size; at += lengths[i++]) {
    TENON_ASSIGN_OR_RETURN(Tensor element, value.Slice(at, at + lengths[i]).Copy());
    TENON_RETURN_IF_ERROR(array->Write(ctx, i, std::move(element), add));
  }
  return ReturnFlow(ctx);
}

void RegisterTensorArrayKernels(OpRegistry& ops) {
  const auto add = [&ops](std::string_view name, ShapeFn shape, auto kernel,
                          std::vector<std::string> attrs = {}) {
    // The first versions have indices and sizes in the device's memory.
    const bool any = name.ends_with("V3");
    ops.Add(name, shape, kernel,
            {.attrs = std::move(attrs), .memory = any ? KernelMemory::kAny : KernelMemory::kDevice})
        .NoExample("needs a step's resources; tensor_array_ops_test covers it");
  };
  for (const std::string version : {"", "V2", "V3"}) {
    const auto named = [&](std::string_view name) { return StrCat("TensorArray", name, version); };
    const ShapeFn handle = version == "V3" ? ScalarShape : NameShape;
    add(named(""), handle, CreateKernel, {"tensor_array_name"});
    add(named("Grad"), handle, GradKernel, {"source"});
    add(named("Write"), ScalarShape, WriteOnHost<WriteToArray>);
    add(named("Scatter"), ScalarShape, WriteOnHost<ScatterToArray>);
    add(named("Split"), ScalarShape, WriteOnHost<SplitToArray>);
    add(named("Read"), UnknownShape, ReadKernel);
    add(named("Gather"), GatherShape, GatherKernel<false>, {"element_shape"});
    add(named("Concat"), UnknownShape, ConcatKernel, {"element_shape_except0"});
    add(named("Size"), ScalarShape, SizeKernel);
    add(named("Close"), NoOutputShape, CloseKernel);
  }
  add("TensorArrayGradWithShape", ScalarShape, GradKernel, {"source"});
  add("TensorArrayPack", PackShape, GatherKernel<true>, {"element_shape"});
  add("TensorArrayUnpack", ScalarShape, WriteOnHost<Scatter<true>>);
}

}  // namespace tenon
