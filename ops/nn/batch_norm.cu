// SPDX-License-Identifier: Apache-2.0
//
// Batch normalisation. The sums over a channel are made in chunks, each by one block in an order
// that depends on the sizes alone, and added up in order of the chunks: results are the same on
// every GPU.
#include "ops/nn/batch_norm.h"

#include <limits>

#include "ops/cuda/element.cuh"
#include "ops/cuda/kernel_types.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/register.h"

namespace tenon::cuda {
namespace {

using BatchNormTypes = TypeList<float, Half, BFloat16>;

/// Threads of a block along channels that lie together.
constexpr int kLanes = 32;
/// Elements of a channel that are worth a block.
constexpr int64_t kChunk = 512;
constexpr int64_t kMostChunks = 256;

/// How the channels are divided among blocks.
struct Chunks {
  explicit Chunks(const ImageChannels& l)
      : outer(l.outer), channels(l.channels), inner(l.inner), count(l.count()) {
    chunks = std::clamp<int64_t>((count + kChunk - 1) / kChunk, 1, kMostChunks);
    size = (count + chunks - 1) / chunks;
  }
  int64_t outer, channels, inner, count;
  int64_t chunks, size;

  /// Where element `e` of a channel is.
  __device__ int64_t At(int64_t channel, int64_t e) const {
    if (inner == 1) return e * channels + channel;
    return (e / inner * channels + channel) * inner + e % inner;
  }
};

/// Two sums over a channel, in double: no rounding of a long sum shows in a float.
struct Sums {
  double a, b;
};

/// Two sums, of x - first element and of its square, from which the moments follow without
/// cancellation.
template <typename T>
struct MomentTerms {
  const T* x;
  __device__ double ShiftOf(const Chunks& l, int64_t c) const {
    return static_cast<double>(Widen(x[l.At(c, 0)]));
  }
  __device__ void Add(Sums& sums, int64_t at, double shift) const {
    const double d = static_cast<double>(Widen(x[at])) - shift;
    sums.a += d;
    sums.b += d * d;
  }
};

/// Two sums, of the gradient and of its products with x - mean.
template <typename T>
struct GradientTerms {
  const T *dy, *x;
  const float* mean;
  __device__ double ShiftOf(const Chunks&, int64_t c) const { return mean[c]; }
  __device__ void Add(Sums& sums, int64_t at, double mean_of_channel) const {
    const double d = Widen(dy[at]);
    sums.a += d;
    sums.b += d * (static_cast<double>(Widen(x[at])) - mean_of_channel);
  }
};

/// parts[chunk * channels + c]: the sums over a chunk of channel c. A block takes kLanes channels
/// where these lie together, else one.
template <bool kTogether, typename Terms>
__global__ void __launch_bounds__(kBlockThreads)
    SumChunks(const Chunks l, const Terms terms, Sums* parts) {
  constexpr int kChannels = kTogether ? kLanes : 1, kSteps = kBlockThreads / kChannels;
  __shared__ Sums shared[kBlockThreads];
  const int lane = kTogether ? threadIdx.x % kLanes : 0;
  const int row = kTogether ? threadIdx.x / kLanes : threadIdx.x;
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kChannels + lane;
  const int64_t begin = blockIdx.y * l.size, end = min(begin + l.size, l.count);
  Sums sums = {0, 0};
  if (c < l.channels) {
    const double shift = terms.ShiftOf(l, c);
    for (int64_t e = begin + row; e < end; e += kSteps) terms.Add(sums, l.At(c, e), shift);
  }
  shared[threadIdx.x] = sums;
  __syncthreads();
  for (int half = kSteps / 2; half > 0; half /= 2) {
    if (row < half) {
      const Sums& other = shared[threadIdx.x + half * kChannels];
      shared[threadIdx.x].a += other.a;
      shared[threadIdx.x].b += other.b;
    }
    __syncthreads();
  }
  if (row == 0 && c < l.channels) parts[blockIdx.y * l.channels + c] = shared[threadIdx.x];
}

template <typename Terms>
Status QueueSums(KernelContext& ctx, const Chunks& l, const Terms& terms, Sums* parts) {
  if (l.inner == 1) {
    const dim3 grid(static_cast<unsigned>((l.channels + kLanes - 1) / kLanes),
                    static_cast<unsigned>(l.chunks));
    SumChunks<true><<<grid, kBlockThreads, 0, StreamOf(ctx)>>>(l, terms, parts);
  } else {
    const dim3 grid(static_cast<unsigned>(l.channels), static_cast<unsigned>(l.chunks));
    SumChunks<false><<<grid, kBlockThreads, 0, StreamOf(ctx)>>>(l, terms, parts);
  }
  return LaunchStatus();
}

__device__ Sums SumOfChunks(const Chunks& l, const Sums* parts, int64_t c) {
  Sums sums = {0, 0};
  for (int64_t k = 0; k < l.chunks; ++k) {
    sums.a += parts[k * l.channels + c].a;
    sums.b += parts[k * l.channels + c].b;
  }
  return sums;
}

/// For each channel: its moments, what the moving averages become, and the factor of x - mean.
template <typename T>
struct FinishMoments {
  Chunks l;
  const Sums* parts;
  MomentTerms<T> terms;
  bool training;
  float epsilon, factor;
  const float *scale, *old_mean, *old_variance;
  float *batch_mean, *batch_variance, *mean, *variance, *factors;

  __device__ void operator()(int64_t c) const {
    float m, v;
    if (training) {
      const Sums sums = SumOfChunks(l, parts, c);
      const double n = static_cast<double>(l.count), of_shifted = sums.a / n;
      m = static_cast<float>(terms.ShiftOf(l, c) + of_shifted);
      v = static_cast<float>(fmax(sums.b / n - of_shifted * of_shifted, 0.0));
      // NaN stays NaN, which fmax passes over.
      if (isnan(sums.b)) v = std::numeric_limits<float>::quiet_NaN();
    } else {
      m = old_mean[c];
      v = old_variance[c];
    }
    mean[c] = m;
    variance[c] = v;
    factors[c] = scale[c] / sqrtf(v + epsilon);
    // The moving averages get the unbiased variance.
    const float n = static_cast<float>(l.count);
    float unbiased = training ? v * (n / fmaxf(1.0f, n - 1)) : v;
    if (training && factor != 1) {
      m = (1 - factor) * old_mean[c] + factor * m;
      unbiased = (1 - factor) * old_variance[c] + factor * unbiased;
    }
    batch_mean[c] = m;
    batch_variance[c] = unbiased;
  }
};

template <typename T>
struct NormalizeElement {
  int64_t channels, inner;
  const T* x;
  const float *mean, *factors, *offset;
  T* y;
  __device__ void operator()(int64_t i) const {
    const int64_t c = inner == 1 ? i % channels : i / inner % channels;
    y[i] = Narrow<T>((Widen(x[i]) - mean[c]) * factors[c] + offset[c]);
  }
};

/// The outputs for an image without elements.
struct FillEmpty {
  float *batch_mean, *batch_variance, *mean, *variance;
  __device__ void operator()(int64_t c) const {
    batch_mean[c] = batch_variance[c] = std::numeric_limits<float>::quiet_NaN();
    mean[c] = variance[c] = 0;
  }
};

/// Memory for the sums of all chunks.
StatusOr<Tensor> AllocateParts(KernelContext& ctx, const Chunks& l) {
  return ctx.AllocateTemp(DType::kDouble, {l.chunks, l.channels, 2});
}

Status BatchNormKernel(KernelContext& ctx, const Tensor& x, float epsilon, float factor,
                       const std::string& data_format, bool training) {
  TENON_ASSIGN_OR_RETURN(const ImageChannels image,
                         CheckBatchNorm(ctx, data_format, training, factor));
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.shape()));
  float* outputs[5] = {};
  for (int i = 1; i < 5; ++i) {
    TENON_ASSIGN_OR_RETURN(Tensor * t, ctx.AllocateOutput(i, Shape{image.channels}));
    outputs[i] = t->data<float>();
  }
  if (ctx.num_outputs() == 6) {
    TENON_ASSIGN_OR_RETURN(Tensor * unused, ctx.AllocateOutput(5, Shape()));
    TENON_RETURN_IF_ERROR(
        QueueStatus(cudaMemsetAsync(unused->raw_data(), 0, sizeof(float), StreamOf(ctx))));
  }
  if (x.num_elements() == 0) {
    return ForEach(ctx, image.channels, FillEmpty{outputs[1], outputs[2], outputs[3], outputs[4]});
  }
  const Chunks l(image);
  TENON_ASSIGN_OR_RETURN(Tensor memory, AllocateParts(ctx, l));
  TENON_ASSIGN_OR_RETURN(Tensor factors, ctx.AllocateTemp(DType::kFloat, {l.channels}));
  auto* const parts = reinterpret_cast<Sums*>(memory.data<double>());
  const auto numbers = [&](int i) { return ctx.input(i).data<float>(); };
  return DispatchStatus(x.dtype(), BatchNormTypes(), [&]<typename T>(T) -> Status {
    const MomentTerms<T> terms{x.data<T>()};
    if (training) TENON_RETURN_IF_ERROR(QueueSums(ctx, l, terms, parts));
    TENON_RETURN_IF_ERROR(
        ForEach(ctx, l.channels,
                FinishMoments<T>{l, parts, terms, training, epsilon, factor, numbers(1), numbers(3),
                                 numbers(4), outputs[1], outputs[2], outputs[3], outputs[4],
                                 factors.data<float>()}));
    return ForEach(ctx, x.num_elements(),
                   NormalizeElement<T>{l.channels, l.inner, x.data<T>(), outputs[3],
                                       factors.data<float>(), numbers(2), y->data<T>()});
  });
}

/// For each channel: the gradients of scale and offset, and what that of x is made with.
struct FinishGradient {
  Chunks l;
  const Sums* parts;
  bool training;
  float epsilon;
  const float *scale, *variance;
  float *dscale, *doffset;
  float *factors, *by_mean, *by_variance;

  __device__ void operator()(int64_t c) const {
    const Sums sums = SumOfChunks(l, parts, c);
    const float inverse = 1 / sqrtf(variance[c] + epsilon);
    const float of_offset = static_cast<float>(sums.a), of_scale = static_cast<float>(sums.b);
    const float n = static_cast<float>(l.count);
    factors[c] = scale[c] * inverse;
    by_mean[c] = training ? of_offset / n : 0;
    by_variance[c] = training ? of_scale / n * inverse * inverse : 0;
    doffset[c] = of_offset;
    dscale[c] = of_scale * inverse;
  }
};

/// dx = factor * (dy - by_mean - (x - mean) * by_variance)
template <typename T>
struct GradientElement {
  int64_t channels, inner;
  const T *dy, *x;
  const float *mean, *factors, *by_mean, *by_variance;
  T* dx;
  __device__ void operator()(int64_t i) const {
    const int64_t c = inner == 1 ? i % channels : i / inner % channels;
    const float centred = Widen(x[i]) - mean[c];
    dx[i] = Narrow<T>(factors[c] * (Widen(dy[i]) - by_mean[c] - centred * by_variance[c]));
  }
};

Status BatchNormGradKernel(KernelContext& ctx, float epsilon, const std::string& data_format,
                           bool training) {
  const Tensor &dy = ctx.input(0), &x = ctx.input(1), &scale = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(const ImageChannels image, CheckBatchNormGrad(ctx, data_format));
  TENON_ASSIGN_OR_RETURN(Tensor * dx, ctx.AllocateOutput(0, x.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * dscale, ctx.AllocateOutput(1, scale.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * doffset, ctx.AllocateOutput(2, scale.shape()));
  for (const int i : {3, 4}) TENON_RETURN_IF_ERROR(ctx.AllocateOutput(i, Shape{0}).status());
  if (x.num_elements() == 0) {
    for (Tensor* t : {dscale, doffset}) {
      if (t->num_elements() == 0) continue;
      TENON_RETURN_IF_ERROR(
          QueueStatus(cudaMemsetAsync(t->raw_data(), 0, t->num_bytes(), StreamOf(ctx))));
    }
    return OkStatus();
  }
  const Chunks l(image);
  TENON_ASSIGN_OR_RETURN(Tensor memory, AllocateParts(ctx, l));
  TENON_ASSIGN_OR_RETURN(Tensor numbers, ctx.AllocateTemp(DType::kFloat, {3, l.channels}));
  auto* const parts = reinterpret_cast<Sums*>(memory.data<double>());
  float* const factors = numbers.data<float>();
  float *const by_mean = factors + l.channels, *const by_variance = by_mean + l.channels;
  const float* const mean = ctx.input(3).data<float>();
  return DispatchStatus(x.dtype(), BatchNormTypes(), [&]<typename T>(T) -> Status {
    TENON_RETURN_IF_ERROR(
        QueueSums(ctx, l, GradientTerms<T>{dy.data<T>(), x.data<T>(), mean}, parts));
    TENON_RETURN_IF_ERROR(
        ForEach(ctx, l.channels,
                FinishGradient{l, parts, training, epsilon, scale.data<float>(),
                               ctx.input(4).data<float>(), dscale->data<float>(),
                               doffset->data<float>(), factors, by_mean, by_variance}));
    return ForEach(ctx, x.num_elements(),
                   GradientElement<T>{l.channels, l.inner, dy.data<T>(), x.data<T>(), mean, factors,
                                      by_mean, by_variance, dx->data<T>()});
  });
}

}  // namespace
}  // namespace tenon::cuda

namespace tenon {

void RegisterCudaBatchNorm(OpRegistry& ops) {
  const DTypeVector floats = DTypesOf(cuda::BatchNormTypes());
  for (const std::string version : {"", "V2", "V3"}) {
    KernelOptions options;
    options.types = {{"T", version.empty() ? DTypeVector{DType::kFloat} : floats}};
    if (!version.empty()) options.types.push_back({"U", {DType::kFloat}});
    options.attrs = {"epsilon", "exponential_avg_factor", "data_format", "is_training"};
    cuda::AddKernel(ops, "FusedBatchNorm" + version, cuda::BatchNormKernel, options);
    options.attrs = {"epsilon", "data_format", "is_training"};
    cuda::AddKernel(ops, "FusedBatchNormGrad" + version, cuda::BatchNormGradKernel, options);
  }
}

}  // namespace tenon
