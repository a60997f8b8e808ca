// SPDX-License-Identifier: Apache-2.0
//
// Classes drawn from rows of logits. The sums of a row are made in order by one thread, so that
// they are the CPU's up to the last places of exp; a sample differs only where it lies that near to
// the edge between two classes.
#include "ops/arguments.h"
#include "ops/cuda/element.cuh"
#include "ops/cuda/kernel_types.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/register.h"
#include "ops/random/draws.h"
#include "ops/random/stream.h"

namespace tenon::cuda {
namespace {

/// sums[row][k] = the sum of exp(logit - highest) over the classes up to k that have a finite
/// logit.
template <typename T>
struct SumRow {
  int64_t classes;
  const T* logits;
  double* sums;
  __device__ void operator()(int64_t row) const {
    const T* const line = logits + row * classes;
    double highest = -std::numeric_limits<double>::max();
    for (int64_t k = 0; k < classes; ++k) {
      const double value = static_cast<double>(Widen(line[k]));
      if (isfinite(value)) highest = fmax(highest, value);
    }
    double sum = 0;
    for (int64_t k = 0; k < classes; ++k) {
      const double value = static_cast<double>(Widen(line[k]));
      if (isfinite(value)) sum += exp(value - highest);
      sums[row * classes + k] = sum;
    }
  }
};

/// The first class whose sum is above the one that is drawn.
template <typename I>
struct DrawClass {
  Philox place;
  int64_t classes, samples;
  const double* sums;
  I* out;
  __device__ void operator()(int64_t i) const {
    Philox stream = place;
    stream.Skip(i / 2);
    const Philox::Block x = stream.Next();
    const double* const line = sums + i / samples * classes;
    const double wanted = UniformOf(x[i % 2 * 2], x[i % 2 * 2 + 1]) * line[classes - 1];
    int64_t first = 0, count = classes;
    while (count > 0) {
      const int64_t half = count / 2;
      if (wanted < line[first + half]) {
        count = half;
      } else {
        first += half + 1;
        count -= half + 1;
      }
    }
    out[i] = static_cast<I>(first);
  }
};

/// `reserve` gives the place for so many rows and samples.
template <typename Reserve>
Status DrawClasses(KernelContext& ctx, Reserve reserve) {
  const Tensor& logits = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(const int64_t samples, CheckClasses(ctx));
  const int64_t rows = logits.dim(0), classes = logits.dim(1);
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, {rows, samples}));
  if (out->num_elements() == 0) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const Philox place, reserve(rows, samples));
  TENON_ASSIGN_OR_RETURN(Tensor sums, ctx.AllocateTemp(DType::kDouble, {rows, classes}));
  TENON_RETURN_IF_ERROR(DispatchStatus(logits.dtype(), FloatTypes(), [&]<typename T>(T) {
    return ForEach(ctx, rows, SumRow<T>{classes, logits.data<T>(), sums.data<double>()});
  }));
  return DispatchStatus(out->dtype(), TypeList<int32_t, int64_t>(), [&]<typename I>(I) {
    return ForEach(ctx, rows * samples,
                   DrawClass<I>{place, classes, samples, sums.data<double>(), out->data<I>()});
  });
}

Status MultinomialKernel(KernelContext& ctx, const Stream& stream) {
  return DrawClasses(ctx, [&](int64_t rows, int64_t samples) -> StatusOr<Philox> {
    return stream.Reserve(BlocksOfClasses(rows, samples));
  });
}

Status StatelessMultinomialKernel(KernelContext& ctx) {
  return DrawClasses(ctx, [&](int64_t, int64_t) { return SeededPlace(ctx.input(2)); });
}

}  // namespace
}  // namespace tenon::cuda

namespace tenon {

void RegisterCudaMultinomial(OpRegistry& ops) {
  const KernelOptions floats = {.types = {{"T", DTypesOf(FloatTypes())}}};
  cuda::AddKernel(ops, "Multinomial", cuda::MultinomialKernel, floats);
  cuda::AddKernel(ops, "StatelessMultinomial", cuda::StatelessMultinomialKernel, floats);
}

}  // namespace tenon
