// SPDX-License-Identifier: Apache-2.0
#include <thrust/iterator/counting_iterator.h>
#include <cub/device/device_select.cuh>

#include "ops/arguments.h"
#include "ops/cuda/device_kind.h"
#include "ops/cuda/element.cuh"
#include "ops/cuda/kernel_types.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/register.h"
#include "ops/cuda/strided_index.h"

namespace tenon {
namespace cuda {
namespace {

template <typename T>
struct IsTrue {
  const T* x;
  uint8_t* flags;
  __device__ void operator()(int64_t i) const { flags[i] = Widen(x[i]) != ComputeType<T>(0); }
};

/// The coordinate in one dimension of each place that was found.
struct WriteCoordinate {
  const int64_t* places;
  int64_t stride, size;
  int rank, dim;
  int64_t* out;
  __device__ void operator()(int64_t i) const { out[i * rank + dim] = places[i] / stride % size; }
};

/// What was found, in order, and how many there are: [n], of which the first `count` are used.
struct Found {
  Tensor places, count;
};

StatusOr<Found> FindPlaces(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  const int64_t n = in.num_elements();
  Found found;
  TENON_ASSIGN_OR_RETURN(Tensor flags, ctx.AllocateTemp(DType::kUInt8, {n}));
  TENON_RETURN_IF_ERROR(DispatchStatus(
      in.dtype(), decltype(ConcatTypes(RealTypes(), TypeList<bool>()))(), [&]<typename T>(T) {
        return ForEach(ctx, n, IsTrue<T>{in.data<T>(), flags.data<uint8_t>()});
      }));
  TENON_ASSIGN_OR_RETURN(found.places, ctx.AllocateTemp(DType::kInt64, {n}));
  TENON_ASSIGN_OR_RETURN(found.count, ctx.AllocateTemp(DType::kInt64, Shape()));
  const auto select = [&](void* memory, size_t* bytes) {
    return QueueStatus(cub::DeviceSelect::Flagged(
        memory, *bytes, thrust::counting_iterator<int64_t>(0), flags.data<uint8_t>(),
        found.places.data<int64_t>(), found.count.data<int64_t>(), n, StreamOf(ctx)));
  };
  size_t bytes = 0;
  TENON_RETURN_IF_ERROR(select(nullptr, &bytes));
  TENON_ASSIGN_OR_RETURN(
      Tensor memory,
      ctx.AllocateTemp(DType::kUInt8, {static_cast<int64_t>(std::max<size_t>(bytes, 1))}));
  TENON_RETURN_IF_ERROR(select(memory.raw_data(), &bytes));
  return found;
}

/// The places are found on the device; once the host knows how many, their coordinates are written.
class WhereKernel final : public AsyncKernel {
 public:
  using AsyncKernel::AsyncKernel;

  void ComputeAsync(KernelContext& ctx, Done done) const override {
    const Tensor& in = ctx.input(0);
    if (in.rank() == 0) {
      return done(InvalidArgument("the input must be at least a vector, found a scalar"));
    }
    if (in.num_elements() == 0) return done(Write(ctx, Tensor(), 0));
    StatusOr<Found> found = FindPlaces(ctx);
    if (!found.ok()) return done(found.status());
    ctx.device().queue()->CopyToHost(
        found->count, ctx.device_run().id,
        [&ctx, done, places = found->places](StatusOr<Tensor> count) {
          done(count.ok() ? Write(ctx, places, count->scalar<int64_t>()) : count.status());
        });
  }

 private:
  static Status Write(KernelContext& ctx, const Tensor& places, int64_t count) {
    const Shape& shape = ctx.input(0).shape();
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, {count, shape.rank()}));
    if (count == 0) return OkStatus();
    const DimVector strides = StridesOf(shape.dims());
    for (int d = 0; d < shape.rank(); ++d) {
      TENON_RETURN_IF_ERROR(
          ForEach(ctx, count,
                  WriteCoordinate{places.data<int64_t>(), strides[d], shape.dim(d), shape.rank(), d,
                                  out->data<int64_t>()}));
    }
    return OkStatus();
  }
};

}  // namespace
}  // namespace cuda

void RegisterCudaWhere(OpRegistry& ops) {
  ops.Get("Where").Kernel<cuda::WhereKernel>(
      kCuda, {.types = {{"T", DTypesOf(decltype(ConcatTypes(RealTypes(), TypeList<bool>()))())}}});
}

}  // namespace tenon
