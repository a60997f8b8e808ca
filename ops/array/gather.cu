// SPDX-License-Identifier: Apache-2.0
#include "ops/array/gather.h"

#include "ops/arguments.h"
#include "ops/array/index_tuples.h"
#include "ops/array/one_hot.h"
#include "ops/cuda/check.cuh"
#include "ops/cuda/element.cuh"
#include "ops/cuda/gather.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/register.h"
#include "ops/cuda/strided_index.h"
#include "ops/cuda/tuple_rows.h"
#include "ops/cuda/wide_rows.h"

namespace tenon {
namespace cuda {
namespace {

/// Where an index is out of range the result is 0, and the error noted.
template <typename T>
struct GatherElement {
  const T* params;
  T* out;
  IndexReader indices;
  Divisor inner, count, outer;
  int64_t limit;
  RunCheck check;

  __device__ void operator()(int64_t i) const {
    const int64_t run = inner.Quotient(i), j = i - run * inner.value();
    const int64_t place = count.Quotient(run), k = run - place * count.value();
    const int64_t at = outer.Quotient(place) * count.value() + k;
    const int64_t row = indices[at];
    if (row < 0 || row >= limit) {
      if (j == 0) NoteIndex(check, at, row);
      out[i] = T{};
      return;
    }
    out[i] = params[(place * limit + row) * inner.value() + j];
  }
};

}  // namespace

Status QueueGatherSlices(KernelContext& ctx, const NodeIdentity& node, const Tensor& params,
                         const Tensor& indices, int axis, int batch_dims) {
  TENON_ASSIGN_OR_RETURN(const GatherPlan plan,
                         PlanGather(params.shape(), indices.shape(), axis, batch_dims));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, plan.shape));
  // Where nothing is gathered, indices are not looked at.
  if (out->num_elements() == 0) return OkStatus();
  RunCheck check =
      AddCheck(ctx, node, [limit = plan.limit, shape = indices.shape()](uint64_t word) {
        const IndexNote note = NotedIndex(word);
        return NotInRange(note.value, limit, ElementName("indices", shape.dims(), note.place));
      });
  const WideRows rows = WidenRows(params, *out, plan.inner);
  const int64_t elements = out->num_elements() / plan.inner * rows.width;
  Status status;
  DispatchBytes(rows.type, [&]<typename T>(T) {
    static_cast<void>(
        status =
            ForEach(ctx, elements,
                    GatherElement<T>{static_cast<const T*>(params.raw_data()),
                                     static_cast<T*>(out->raw_data()), IndexReader(indices),
                                     Divisor(rows.width, elements), Divisor(plan.count, elements),
                                     Divisor(plan.outer, elements), plan.limit, check}));
  });
  return status;
}

namespace {

Status GatherKernel(KernelContext& ctx, const NodeIdentity& node) {
  if (ctx.input(0).rank() < 1) {
    return InvalidArgument("params must be at least 1 dimensional");
  }
  return QueueGatherSlices(ctx, node, ctx.input(0), ctx.input(1), 0, 0);
}

Status GatherV2Kernel(KernelContext& ctx, const NodeIdentity& node, int64_t batch_dims_attr) {
  TENON_ASSIGN_OR_RETURN(const int axis, ReadAxis(ctx.input(2), ctx.input(0).rank(), "axis"));
  TENON_ASSIGN_OR_RETURN(const int batch_dims,
                         NormalizeBatchDims(batch_dims_attr, ctx.input(1).rank()));
  return QueueGatherSlices(ctx, node, ctx.input(0), ctx.input(1), axis, batch_dims);
}

template <typename T>
struct GatherTupleElement {
  const T* params;
  T* out;
  TupleRows tuples;
  Divisor width;
  RunCheck check;

  __device__ void operator()(int64_t i) const {
    const int64_t tuple = width.Quotient(i), j = i - tuple * width.value();
    int64_t bad = 0;
    const int64_t row = tuples.Row(tuple, &bad);
    if (row < 0 && j == 0) NoteIndex(check, tuple, bad);
    out[i] = row < 0 ? T{} : params[row * width.value() + j];
  }
};

}  // namespace

Status QueueGatherTuples(KernelContext& ctx, const NodeIdentity& node, const Tensor& params,
                         const Tensor& indices) {
  TENON_RETURN_IF_ERROR(CheckGatheredParams(params.shape(), indices.shape()));
  TENON_ASSIGN_OR_RETURN(const TupleSizes sizes, SizesOfTuples(indices.shape(), params.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, SlicesShape(indices.shape().dims(),
                                                                       params.shape().dims())));
  TENON_ASSIGN_OR_RETURN(const TupleRows tuples, TupleRows::Create(indices, params.shape()));
  const WideRows rows = WidenRows(params, *out, sizes.width);
  // Where slices have no elements their indices still count.
  const int64_t elements = sizes.count * std::max<int64_t>(rows.width, sizes.depth > 0 ? 1 : 0);
  if (elements == 0) return OkStatus();
  RunCheck check = AddTupleCheck(ctx, node, indices.shape(), "param shape", params.shape());
  if (sizes.width == 0) return CheckTuples(ctx, tuples, sizes.count, check);
  Status status;
  DispatchBytes(rows.type, [&]<typename T>(T) {
    static_cast<void>(status =
                          ForEach(ctx, elements,
                                  GatherTupleElement<T>{static_cast<const T*>(params.raw_data()),
                                                        static_cast<T*>(out->raw_data()), tuples,
                                                        Divisor(rows.width, elements), check}));
  });
  return status;
}

namespace {

Status GatherNdKernel(KernelContext& ctx, const NodeIdentity& node) {
  return QueueGatherTuples(ctx, node, ctx.input(0), ctx.input(1));
}

template <typename T>
struct OneHotElement {
  IndexReader indices;
  const T *on, *off;
  T* out;
  Divisor depth, inner;

  __device__ void operator()(int64_t i) const {
    const int64_t run = inner.Quotient(i), j = i - run * inner.value();
    const int64_t outer = depth.Quotient(run), place = run - outer * depth.value();
    out[i] = indices[outer * inner.value() + j] == place ? *on : *off;
  }
};

Status OneHotKernel(KernelContext& ctx, int64_t axis_attr) {
  TENON_ASSIGN_OR_RETURN(const OneHotPlan plan, PlanOneHot(ctx, axis_attr));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, plan.shape.dims()));
  const int64_t elements = out->num_elements();
  if (elements == 0) return OkStatus();
  Status status;
  DispatchBytes(out->dtype(), [&]<typename T>(T) {
    static_cast<void>(
        status = ForEach(
            ctx, elements,
            OneHotElement<T>{
                IndexReader(ctx.input(0)), static_cast<const T*>(ctx.input(2).raw_data()),
                static_cast<const T*>(ctx.input(3).raw_data()), static_cast<T*>(out->raw_data()),
                Divisor(plan.depth, elements), Divisor(plan.inner, elements)}));
  });
  return status;
}

}  // namespace
}  // namespace cuda

void RegisterCudaGather(OpRegistry& ops) {
  const DTypeVector plain = DTypesOf(PlainTypes());
  cuda::AddKernel(ops, "Gather", cuda::GatherKernel, {.types = {{"Tparams", plain}}});
  cuda::AddKernel(ops, "GatherV2", cuda::GatherV2Kernel,
                  {.types = {{"Tparams", plain}}, .attrs = {"batch_dims"}});
  cuda::AddKernel(ops, "GatherNd", cuda::GatherNdKernel, {.types = {{"Tparams", plain}}});
  cuda::AddKernel(ops, "OneHot", cuda::OneHotKernel, {.types = {{"T", plain}}, .attrs = {"axis"}});
}

}  // namespace tenon
