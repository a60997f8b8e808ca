// SPDX-License-Identifier: Apache-2.0
#include "ops/tensor_array/tensor_array_ops.h"

#include <atomic>

#include "ops/arguments.h"
#include "ops/elements.h"
#include "ops/tensor_array/register.h"
#include "ops/tensor_array/tensor_array.h"
#include "ops/tensor_array/tensor_array_gradients.h"
#include "ops/state/variables.h"

namespace tenon {
namespace {

constexpr char kTensorArrayContainer[] = "_tensor_arrays";

StatusOr<std::shared_ptr<TensorArray>> ArrayInput(const KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const ResourceHandle* handle, HandleInput(ctx, 0));
  TENON_ASSIGN_OR_RETURN(const ResourceStore* store, StepResources(ctx));
  return store->Lookup<TensorArray>(handle->container, handle->name);
}

Tensor HandleOf(const KernelContext& ctx, std::string name) {
  ResourceHandle handle;
  handle.device = ctx.device().name();
  handle.container = kTensorArrayContainer;
  handle.name = std::move(name);
  handle.type_name = "N10tensorflow11TensorArrayE";
  return Tensor::Scalar(std::move(handle));
}

Tensor Flow() { return Tensor::Scalar(0.0f); }

class CreateKernel final : public Kernel {
 public:
  explicit CreateKernel(KernelConstruction& c)
      : Kernel(c), array_name_(c.Attr<std::string>("tensor_array_name")) {
    options_.dtype = c.Attr<DType>("dtype");
    options_.element_shape = c.Attr<PartialShape>("element_shape");
    options_.dynamic_size = c.Attr<bool>("dynamic_size");
    options_.clear_after_read = c.Attr<bool>("clear_after_read");
    options_.identical_shapes = c.Attr<bool>("identical_element_shapes");
  }
  Status Compute(KernelContext& ctx) const override {
    TENON_ASSIGN_OR_RETURN(const int64_t size, ReadInteger(ctx.input(0), "size"));
    if (size < 0 || size > (int64_t{1} << 28)) {
      return InvalidArgument("TensorArray size must be in [0, 2^28], found ", size);
    }
    TENON_ASSIGN_OR_RETURN(ResourceStore * store, StepResources(ctx));
    // Every run makes an array of its own: inside an outer loop there is one an iteration.
    const std::string unique =
        StrCat(array_name_.empty() ? name() : array_name_, "_", made_.fetch_add(1));
    TENON_RETURN_IF_ERROR(store->LookupOrCreate<TensorArray>(kTensorArrayContainer, unique, [&] {
      return std::make_shared<TensorArray>(unique, options_, size);
    }));
    ctx.set_output(0, HandleOf(ctx, unique));
    ctx.set_output(1, Flow());
    return OkStatus();
  }

 private:
  /// One count for all kernels: two nodes may use the same name.
  static inline std::atomic<int64_t> made_{0};
  const std::string array_name_;
  TensorArray::Options options_;
};

class GradKernel final : public Kernel {
 public:
  explicit GradKernel(KernelConstruction& c) : Kernel(c), source_(c.Attr<std::string>("source")) {}
  Status Compute(KernelContext& ctx) const override {
    TENON_ASSIGN_OR_RETURN(const std::shared_ptr<TensorArray> array, ArrayInput(ctx));
    TENON_ASSIGN_OR_RETURN(ResourceStore * store, StepResources(ctx));
    const std::string name = StrCat(array->name(), "@", source_);
    TENON_RETURN_IF_ERROR(store->LookupOrCreate<TensorArray>(
        kTensorArrayContainer, name, [&] { return array->MakeGradient(name); }));
    ctx.set_output(0, HandleOf(ctx, name));
    ctx.set_output(1, Flow());
    return OkStatus();
  }

 private:
  const std::string source_;
};

Status WriteKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const std::shared_ptr<TensorArray> array, ArrayInput(ctx));
  TENON_ASSIGN_OR_RETURN(const int64_t index, ReadInteger(ctx.input(1), "index"));
  TENON_RETURN_IF_ERROR(array->Write(index, ctx.TakeInput(2)));
  ctx.set_output(0, Flow());
  return OkStatus();
}

StatusOr<std::shared_ptr<TensorArray>> ReadableArray(const KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(std::shared_ptr<TensorArray> array, ArrayInput(ctx));
  if (array->dtype() == ctx.output_type(0)) return array;
  return InvalidArgument("TensorArray dtype is ", ToString(array->dtype()),
                         " but Op requested dtype ", ToString(ctx.output_type(0)), ".");
}

Status TensorArrayReadKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const std::shared_ptr<TensorArray> array, ReadableArray(ctx));
  TENON_ASSIGN_OR_RETURN(const int64_t index, ReadInteger(ctx.input(1), "index"));
  TENON_ASSIGN_OR_RETURN(Tensor value, array->Read(index));
  ctx.set_output(0, std::move(value));
  return OkStatus();
}

/// The shape of an element where there is none to look at.
StatusOr<Shape> EmptyElementShape(const TensorArray& array, const PartialShape& attr) {
  TENON_ASSIGN_OR_RETURN(const PartialShape shape, array.ElementShape(attr));
  if (shape.IsFullyKnown()) return shape.ToShape();
  return Unimplemented("TensorArray has size zero, but element shape ", shape.ToString(),
                       " is not fully defined. Currently only static shapes are supported when "
                       "packing zero-size TensorArrays.");
}

/// Puts the elements one after the other; their sizes add up to the output's.
Status JoinElements(KernelContext& ctx, const std::vector<Tensor>& elements, const Shape& shape) {
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  int64_t at = 0;
  for (const Tensor& e : elements) {
    if (Interrupted()) break;
    CopyElements(e.dtype(), e.raw_data(), ElementAt(*out, at), e.num_elements());
    at += e.num_elements();
  }
  return OkStatus();
}

class TensorArrayGatherKernel final : public Kernel {
 public:
  explicit TensorArrayGatherKernel(KernelConstruction& c)
      : Kernel(c), element_shape_(c.Attr<PartialShape>("element_shape")) {}
  Status Compute(KernelContext& ctx) const override {
    TENON_ASSIGN_OR_RETURN(const std::shared_ptr<TensorArray> array, ReadableArray(ctx));
    TENON_ASSIGN_OR_RETURN(const DimVector indices, ReadIntegerVector(ctx.input(1), "indices"));
    std::vector<Tensor> elements;
    for (const int64_t i : indices) {
      TENON_ASSIGN_OR_RETURN(Tensor element, array->Read(i));
      if (!elements.empty() && !(elements[0].shape() == element.shape())) {
        return InvalidArgument("TensorArray has inconsistent shapes. Index ", indices[0],
                               " has shape: ", elements[0].shape().ToString(), " but index ", i,
                               " has shape: ", element.shape().ToString());
      }
      elements.push_back(std::move(element));
    }
    Shape shape;
    if (elements.empty()) {
      TENON_ASSIGN_OR_RETURN(shape, EmptyElementShape(*array, element_shape_));
    } else {
      shape = elements[0].shape();
      if (!element_shape_.IsCompatibleWith(shape)) {
        return InvalidArgument("the elements have shape ", shape.ToString(), ", wanted ",
                               element_shape_.ToString());
      }
    }
    DimVector dims(shape.dims().begin(), shape.dims().end());
    dims.insert(dims.begin(), static_cast<int64_t>(elements.size()));
    TENON_ASSIGN_OR_RETURN(const Shape packed, Shape::Create(dims));
    return JoinElements(ctx, elements, packed);
  }

 private:
  const PartialShape element_shape_;
};

class TensorArrayConcatKernel final : public Kernel {
 public:
  explicit TensorArrayConcatKernel(KernelConstruction& c)
      : Kernel(c), rest_(c.Attr<PartialShape>("element_shape_except0")) {}
  Status Compute(KernelContext& ctx) const override {
    TENON_ASSIGN_OR_RETURN(const std::shared_ptr<TensorArray> array, ReadableArray(ctx));
    TENON_ASSIGN_OR_RETURN(const int64_t size, array->Size());
    std::vector<Tensor> elements;
    TENON_ASSIGN_OR_RETURN(Tensor lengths, ctx.AllocateTemp(DType::kInt64, {size}));
    DimVector rest;
    int64_t rows = 0;
    for (int64_t i = 0; i < size; ++i) {
      TENON_ASSIGN_OR_RETURN(Tensor element, array->Read(i));
      if (element.rank() == 0) {
        return InvalidArgument("Concat saw a scalar shape at index ", i,
                               " but requires at least vectors.");
      }
      const auto tail = element.shape().dims().subspan(1);
      if (i == 0) rest.assign(tail.begin(), tail.end());
      if (!(absl::Span<const int64_t>(rest) == tail)) {
        return InvalidArgument(
            "TensorArray has inconsistent shapes. Index 0 has (excepting "
            "dimension 0) shape: ",
            PartialShape(rest).ToString(), " but index ", i,
            " has shape: ", element.shape().ToString());
      }
      lengths.data<int64_t>()[i] = element.dim(0);
      TENON_ASSIGN_OR_RETURN(rows, AddSizes(rows, element.dim(0)));
      elements.push_back(std::move(element));
    }
    if (size == 0) {
      if (!rest_.IsFullyKnown()) {
        return Unimplemented("TensorArray has size zero, but element_shape_except0 ",
                             rest_.ToString(), " is not fully defined.");
      }
      rest.assign(rest_.dims().begin(), rest_.dims().end());
    }
    rest.insert(rest.begin(), rows);
    TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(rest));
    ctx.set_output(1, std::move(lengths));
    return JoinElements(ctx, elements, shape);
  }

 private:
  const PartialShape rest_;
};

/// Rows [begin, end) of `value` as a tensor of its own, so that an element does not keep all of the
/// value in memory.
StatusOr<Tensor> RowsOf(const Tensor& value, int64_t begin, int64_t end, const Shape& shape) {
  TENON_ASSIGN_OR_RETURN(Tensor rows, Tensor::Allocate(CpuAllocator(), value.dtype(), shape));
  const Tensor slice = value.Slice(begin, end);
  CopyElements(value.dtype(), slice.raw_data(), rows.raw_data(), rows.num_elements());
  return rows;
}

Status TensorArrayScatterKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const std::shared_ptr<TensorArray> array, ArrayInput(ctx));
  TENON_ASSIGN_OR_RETURN(const DimVector indices, ReadIntegerVector(ctx.input(1), "indices"));
  const Tensor& value = ctx.input(2);
  if (value.rank() < 1) return InvalidArgument("Input value for unpack must be at least a vector");
  if (value.dim(0) != static_cast<int64_t>(indices.size())) {
    return InvalidArgument("Expected len(indices) == values.shape[0], but saw: ", indices.size(),
                           " vs. ", value.dim(0));
  }
  const Shape shape = value.shape().WithoutDim(0);
  for (int64_t i = 0; i < value.dim(0); ++i) {
    TENON_ASSIGN_OR_RETURN(Tensor element, RowsOf(value, i, i + 1, shape));
    TENON_RETURN_IF_ERROR(array->Write(indices[i], std::move(element)));
  }
  ctx.set_output(0, Flow());
  return OkStatus();
}

Status TensorArraySplitKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const std::shared_ptr<TensorArray> array, ArrayInput(ctx));
  const Tensor& value = ctx.input(1);
  TENON_ASSIGN_OR_RETURN(const DimVector lengths, ReadIntegerVector(ctx.input(2), "lengths"));
  if (value.rank() < 1) return InvalidArgument("Expected value to be at least a vector");
  int64_t total = 0;
  for (const int64_t n : lengths) {
    if (n < 0 || n > value.dim(0) - total) {
      return InvalidArgument(
          "Expected sum of lengths to be equal to values.shape[0], found lengths ",
          Join(lengths, ","), " for ", value.dim(0));
    }
    total += n;
  }
  if (total != value.dim(0)) {
    return InvalidArgument(
        "Expected sum of lengths to be equal to values.shape[0], but sum of "
        "lengths is ",
        total, " and value's shape is: ", value.shape().ToString());
  }
  TENON_RETURN_IF_ERROR(array->Grow(static_cast<int64_t>(lengths.size())));
  TENON_ASSIGN_OR_RETURN(const int64_t size, array->Size());
  if (size != static_cast<int64_t>(lengths.size())) {
    return InvalidArgument("TensorArray's size is not equal to the size of lengths (", size,
                           " vs. ", lengths.size(), ")");
  }
  int64_t at = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    TENON_ASSIGN_OR_RETURN(
        Tensor element, RowsOf(value, at, at + lengths[i], value.shape().WithDim(0, lengths[i])));
    TENON_RETURN_IF_ERROR(array->Write(static_cast<int64_t>(i), std::move(element)));
    at += lengths[i];
  }
  ctx.set_output(0, Flow());
  return OkStatus();
}

Status TensorArraySizeKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const std::shared_ptr<TensorArray> array, ArrayInput(ctx));
  TENON_ASSIGN_OR_RETURN(const int64_t size, array->Size());
  ctx.set_output(0, Tensor::Scalar(static_cast<int32_t>(size)));
  return OkStatus();
}

Status TensorArrayCloseKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const std::shared_ptr<TensorArray> array, ArrayInput(ctx));
  array->Close();
  return OkStatus();
}

Status TensorArrayGatherShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape element, c.Attr<PartialShape>("element_shape"));
  TENON_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRank(1, 1));
  if (!element.rank_known()) return OkStatus();
  DimVector dims(element.dims().begin(), element.dims().end());
  dims.insert(dims.begin(), indices.dim(0));
  c.set_output(0, PartialShape(dims));
  return OkStatus();
}

constexpr char kNeedsTensorArray[] = "needs a step's resources; tensor_array_ops_test covers it";

void RegisterWrites(OpRegistry& ops) {
  ops.Get("TensorArrayWriteV3")
      .Shape(ScalarShape).Grad(TensorArrayWriteGrad).NoExample(kNeedsTensorArray)
      .Kernel(kCpu, WriteKernel, {.host_args = {"handle", "index"}});
  ops.Get("TensorArrayScatterV3")
      .Shape(ScalarShape).Grad(TensorArrayScatterGrad).NoExample(kNeedsTensorArray)
      .Kernel(kCpu, TensorArrayScatterKernel, {.host_args = {"handle", "indices"}});
  ops.Get("TensorArraySplitV3")
      .Shape(ScalarShape).Grad(TensorArraySplitGrad).NoExample(kNeedsTensorArray)
      .Kernel(kCpu, TensorArraySplitKernel, {.host_args = {"handle", "lengths"}});
}

void RegisterReads(OpRegistry& ops) {
  ops.Get("TensorArrayReadV3")
      .Shape(UnknownShape).Grad(TensorArrayReadGrad).NoExample(kNeedsTensorArray)
      .Kernel(kCpu, TensorArrayReadKernel, {.host_args = {"handle", "index"}});
  ops.Get("TensorArrayGatherV3")
      .Shape(TensorArrayGatherShape).Grad(TensorArrayGatherGrad).NoExample(kNeedsTensorArray)
      .Kernel<TensorArrayGatherKernel>(kCpu, {.host_args = {"handle", "indices"}});
  ops.Get("TensorArrayConcatV3")
      .Shape(UnknownShape).Grad(TensorArrayConcatGrad).NoExample(kNeedsTensorArray)
      .Kernel<TensorArrayConcatKernel>(kCpu, {.host_args = {"handle", "lengths"}});
  ops.Get("TensorArraySizeV3")
      .Shape(ScalarShape).NotDifferentiable().NoExample(kNeedsTensorArray)
      .Kernel(kCpu, TensorArraySizeKernel, {.host_args = {"handle", "size"}});
}

}  // namespace

void RegisterTensorArrayKernels(OpRegistry& ops) {
  ops.Get("TensorArrayV3")
      .Shape(ScalarShape).NotDifferentiable().NoExample(kNeedsTensorArray)
      .Kernel<CreateKernel>(kCpu, {.host_args = {"size", "handle"}});
  RegisterWrites(ops);
  RegisterReads(ops);
  ops.Get("TensorArrayGradV3")
      .Shape(ScalarShape).NotDifferentiable().NoExample(kNeedsTensorArray)
      .Kernel<GradKernel>(kCpu, {.host_args = {"handle", "grad_handle"}});
  ops.Get("TensorArrayCloseV3")
      .Shape(NoOutputShape).NotDifferentiable().NoExample(kNeedsTensorArray)
      .Kernel(kCpu, TensorArrayCloseKernel, {.host_args = {"handle"}});
}

}  // namespace tenon
