// SPDX-License-Identifier: Apache-2.0
//
// Two-dimensional convolutions by cuDNN. Only what always gives the same bits is used, and floats
// are not rounded to TF32.
#include <map>
#include <memory>
#include <optional>

#include "core/base/mutex.h"
#include "ops/cuda/cudnn.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/elements.h"
#include "ops/nn/conv_device.h"

namespace tenon::cuda {
namespace {

#define TENON_CUDNN_FUNCTIONS(F)              \
  F(Create)                                   \
  F(SetStream)                                \
  F(GetErrorString)                           \
  F(CreateTensorDescriptor)                   \
  F(SetTensor4dDescriptor)                    \
  F(DestroyTensorDescriptor)                  \
  F(CreateFilterDescriptor)                   \
  F(SetFilter4dDescriptor)                    \
  F(DestroyFilterDescriptor)                  \
  F(CreateConvolutionDescriptor)              \
  F(SetConvolution2dDescriptor)               \
  F(SetConvolutionGroupCount)                 \
  F(SetConvolutionMathType)                   \
  F(DestroyConvolutionDescriptor)             \
  F(GetConvolutionForwardAlgorithm_v7)        \
  F(GetConvolutionBackwardDataAlgorithm_v7)   \
  F(GetConvolutionBackwardFilterAlgorithm_v7) \
  F(ConvolutionForward)                       \
  F(ConvolutionBackwardData)                  \
  F(ConvolutionBackwardFilter)

/// The library's functions.
struct Api {
#define TENON_MEMBER(NAME) decltype(&cudnn##NAME) NAME = nullptr;
  TENON_CUDNN_FUNCTIONS(TENON_MEMBER)
#undef TENON_MEMBER

  /// Null where the library is missing.
  static const Api* Get() {
    static const std::optional<Api> api = []() -> std::optional<Api> {
      Api made;
#define TENON_LOAD(NAME)                                                           \
  if (const auto f = Cudnn().Get<decltype(&cudnn##NAME)>("cudnn" #NAME); f.ok()) { \
    made.NAME = *f;                                                                \
  } else {                                                                         \
    return std::nullopt;                                                           \
  }
      TENON_CUDNN_FUNCTIONS(TENON_LOAD)
#undef TENON_LOAD
      return made;
    }();
    return api.has_value() ? &*api : nullptr;
  }
};
#undef TENON_CUDNN_FUNCTIONS

/// A convolution as cuDNN gets it: padded alike on both sides, so that the image may have to be
/// padded before.
struct Conv2d {
  Conv2d(const ConvShape& s, DType type) : shape(s), type(type) {
    for (int d = 0; d < 2; ++d) {
      const WindowAxis& a = s.axes[d + 1];
      padding[d] = std::min(a.before, a.after);
      missing[d] = a.before - padding[d];
      padded[d] = a.in + a.before + a.after - 2 * padding[d];
    }
  }

  /// Whether sizes are within those of the library.
  bool Fits() const {
    const WindowAxis& depth = shape.axes[0];
    if (!(depth == WindowAxis())) return false;
    double most = 0;
    const double image = static_cast<double>(padded[0]) * static_cast<double>(padded[1]);
    const double in = static_cast<double>(shape.in_channels);
    const double out = static_cast<double>(shape.out_channels);
    const double batch = static_cast<double>(shape.batch);
    most = std::max(most, batch * image * in);
    most = std::max(most, batch * static_cast<double>(shape.out_pixels()) * out);
    most = std::max(most, static_cast<double>(shape.taps() * shape.group_inputs()) * out);
    for (int d = 1; d < 3; ++d) {
      const WindowAxis& a = shape.axes[d];
      most = std::max(most, static_cast<double>(std::max(a.stride, a.dilation)));
    }
    return most < INT32_MAX;
  }
  bool is_padded() const { return padded[0] != shape.axes[1].in || padded[1] != shape.axes[2].in; }
  int64_t padded_elements() const {
    return shape.batch * padded[0] * padded[1] * shape.in_channels;
  }

  const ConvShape& shape;
  const DType type;
  int64_t padding[2], missing[2], padded[2];
};

/// Copies between an image and the padded one, by elements of the latter.
template <typename E>
struct MovePadded {
  int64_t in[2], padded[2], missing[2];
  int64_t outer_channels, inner_channels;  // before and behind the pixels: one of them is 1
  const E* from;
  E* to;
  bool crops;
  __device__ void operator()(int64_t i) const {
    const int64_t c = i % inner_channels, pixel = i / inner_channels;
    const int64_t x = pixel % padded[1] - missing[1];
    const int64_t y = pixel / padded[1] % padded[0] - missing[0];
    const int64_t outer = pixel / padded[1] / padded[0];
    const bool inside = y >= 0 && y < in[0] && x >= 0 && x < in[1];
    const int64_t at = ((outer * in[0] + y) * in[1] + x) * inner_channels + c;
    if (crops) {
      if (inside) to[at] = from[i];
    } else {
      to[i] = inside ? from[at] : E{};
    }
  }
};

/// Filters [taps, inputs, outputs], as ours are, to or from [outputs, taps, inputs], or with
/// channels_first [outputs, inputs, taps].
template <typename E>
struct MoveFilter {
  int64_t taps, inputs, outputs;
  bool channels_first, back;
  const E* from;
  E* to;
  __device__ void operator()(int64_t i) const {
    const int64_t o = i % outputs, input = i / outputs % inputs, tap = i / outputs / inputs;
    const int64_t at =
        channels_first ? (o * inputs + input) * taps + tap : (o * taps + tap) * inputs + input;
    if (back) {
      to[i] = from[at];
    } else {
      to[at] = from[i];
    }
  }
};

/// fn(E()) with an element of the size of `type`'s: 2, 4 or 8 bytes.
template <typename Fn>
Status WithFloatSize(DType type, Fn fn) {
  switch (SizeOf(type)) {
    case 2:
      return fn(uint16_t());
    case 4:
      return fn(uint32_t());
    default:
      return fn(uint64_t());
  }
}

Status QueuePadded(KernelContext& ctx, const Conv2d& conv, const void* from, void* to, bool crops) {
  return WithFloatSize(conv.type, [&]<typename E>(E) {
    const ConvShape& s = conv.shape;
    return ForEach(ctx, conv.padded_elements(),
                   MovePadded<E>{{s.axes[1].in, s.axes[2].in},
                                 {conv.padded[0], conv.padded[1]},
                                 {conv.missing[0], conv.missing[1]},
                                 s.channels_first ? s.in_channels : 1,
                                 s.channels_first ? 1 : s.in_channels,
                                 static_cast<const E*>(from),
                                 static_cast<E*>(to),
                                 crops});
  });
}

Status QueueFilter(KernelContext& ctx, const Conv2d& conv, const void* from, void* to, bool back) {
  return WithFloatSize(conv.type, [&]<typename E>(E) {
    const ConvShape& s = conv.shape;
    return ForEach(ctx, s.taps() * s.group_inputs() * s.out_channels,
                   MoveFilter<E>{s.taps(), s.group_inputs(), s.out_channels, s.channels_first, back,
                                 static_cast<const E*>(from), static_cast<E*>(to)});
  });
}

cudnnDataType_t DataType(DType type) {
  return type == DType::kDouble     ? CUDNN_DATA_DOUBLE
         : type == DType::kHalf     ? CUDNN_DATA_HALF
         : type == DType::kBFloat16 ? CUDNN_DATA_BFLOAT16
                                    : CUDNN_DATA_FLOAT;
}

template <typename T>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, cudnnStatus_t (*)(T)>;

/// What the library knows the arguments of a convolution as.
struct Descriptors {
  Owned<cudnnTensorDescriptor_t> input{nullptr, nullptr}, output{nullptr, nullptr};
  Owned<cudnnFilterDescriptor_t> filter{nullptr, nullptr};
  Owned<cudnnConvolutionDescriptor_t> conv{nullptr, nullptr};

  /// False when it has no such thing.
  bool Make(const Api& api, const Conv2d& c) {
    const ConvShape& s = c.shape;
    const cudnnDataType_t type = DataType(c.type);
    const auto format = s.channels_first ? CUDNN_TENSOR_NCHW : CUDNN_TENSOR_NHWC;
    const auto compute = c.type == DType::kDouble ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    const auto math = SizeOf(c.type) == 2       ? CUDNN_TENSOR_OP_MATH
                      : c.type == DType::kFloat ? CUDNN_FMA_MATH
                                                : CUDNN_DEFAULT_MATH;
    const auto n = [](int64_t size) { return static_cast<int>(size); };
    const WindowAxis &y = s.axes[1], &x = s.axes[2];
    const auto good = [](cudnnStatus_t status) { return status == CUDNN_STATUS_SUCCESS; };
    return Create(api.CreateTensorDescriptor, api.DestroyTensorDescriptor, &input) &&
           Create(api.CreateTensorDescriptor, api.DestroyTensorDescriptor, &output) &&
           Create(api.CreateFilterDescriptor, api.DestroyFilterDescriptor, &filter) &&
           Create(api.CreateConvolutionDescriptor, api.DestroyConvolutionDescriptor, &conv) &&
           good(api.SetTensor4dDescriptor(input.get(), format, type, n(s.batch), n(s.in_channels),
                                          n(c.padded[0]), n(c.padded[1]))) &&
           good(api.SetTensor4dDescriptor(output.get(), format, type, n(s.batch), n(s.out_channels),
                                          n(y.out), n(x.out))) &&
           good(api.SetFilter4dDescriptor(filter.get(), type, format, n(s.out_channels),
                                          n(s.group_inputs()), n(y.window), n(x.window))) &&
           good(api.SetConvolution2dDescriptor(conv.get(), n(c.padding[0]), n(c.padding[1]),
                                               n(y.stride), n(x.stride), n(y.dilation),
                                               n(x.dilation), CUDNN_CROSS_CORRELATION, compute)) &&
           good(api.SetConvolutionGroupCount(conv.get(), n(s.groups))) &&
           good(api.SetConvolutionMathType(conv.get(), math));
  }

 private:
  template <typename T>
  static bool Create(cudnnStatus_t (*create)(T*), cudnnStatus_t (*destroy)(T), Owned<T>* to) {
    T made = nullptr;
    if (create(&made) != CUDNN_STATUS_SUCCESS) return false;
    *to = Owned<T>(made, destroy);
    return true;
  }
};

/// How the library computes a convolution; nothing when it cannot.
struct Algorithm {
  int number = 0;
  size_t workspace = 0;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

/// Bytes of memory that a convolution may take beside its arguments.
constexpr size_t kMostWorkspace = size_t{1} << 30;

template <typename Found, typename Find>
std::optional<Algorithm> Fastest(Find find) {
  constexpr int kMost = 16;
  Found found[kMost];
  int count = 0;
  if (find(kMost, &count, found) != CUDNN_STATUS_SUCCESS) return std::nullopt;
  for (int i = 0; i < count; ++i) {
    if (found[i].status != CUDNN_STATUS_SUCCESS || found[i].memory > kMostWorkspace) continue;
    if (found[i].determinism != CUDNN_DETERMINISTIC) continue;
    return Algorithm{static_cast<int>(found[i].algo), found[i].memory, found[i].mathType};
  }
  return std::nullopt;
}

std::optional<Algorithm> FindAlgorithm(const Api& api, cudnnHandle_t handle, ConvPass pass,
                                       const Descriptors& d) {
  const auto x = d.input.get(), y = d.output.get();
  const auto f = d.filter.get();
  const auto conv = d.conv.get();
  switch (pass) {
    case ConvPass::kOutput:
      return Fastest<cudnnConvolutionFwdAlgoPerf_t>([&](int most, int* count, auto* found) {
        return api.GetConvolutionForwardAlgorithm_v7(handle, x, f, conv, y, most, count, found);
      });
    case ConvPass::kInput:
      return Fastest<cudnnConvolutionBwdDataAlgoPerf_t>([&](int most, int* count, auto* found) {
        return api.GetConvolutionBackwardDataAlgorithm_v7(handle, f, y, conv, x, most, count,
                                                          found);
      });
    case ConvPass::kFilter:
      return Fastest<cudnnConvolutionBwdFilterAlgoPerf_t>([&](int most, int* count, auto* found) {
        return api.GetConvolutionBackwardFilterAlgorithm_v7(handle, x, y, conv, f, most, count,
                                                            found);
      });
  }
  return std::nullopt;
}

/// The library's state of each device, and what was found for the convolutions so far. A handle may
/// be used by one thread at a time.
struct State {
  Mutex mu;
  std::map<int, cudnnHandle_t> handles ABSL_GUARDED_BY(mu);
  std::map<std::vector<int64_t>, std::optional<Algorithm>> found ABSL_GUARDED_BY(mu);
};

State& GlobalState() {
  static State& state = *new State;  // used until the process ends
  return state;
}

/// All that an algorithm depends on.
std::vector<int64_t> KeyOf(int device, ConvPass pass, const Conv2d& conv) {
  const ConvShape& s = conv.shape;
  std::vector<int64_t> key = {device,        static_cast<int64_t>(pass),
                              s.batch,       static_cast<int64_t>(conv.type),
                              s.in_channels, s.out_channels,
                              s.groups,      s.channels_first};
  for (const WindowAxis& a : s.axes) {
    key.insert(key.end(), {a.in, a.window, a.stride, a.dilation, a.before, a.after, a.out});
  }
  return key;
}

/// What the library's kernels may read at once: a part of a tensor, as Split gives, may begin
/// elsewhere.
bool IsAligned(const Tensor& t) { return reinterpret_cast<uintptr_t>(t.raw_data()) % 16 == 0; }

/// Memory for `elements` of the convolution's dtype.
StatusOr<Tensor> AllocateCopy(KernelContext& ctx, const Conv2d& conv, int64_t elements) {
  return ctx.AllocateTemp(conv.type, {elements});
}

}  // namespace

StatusOr<bool> ConvolveByCudnn(KernelContext& ctx, ConvPass pass, const ConvShape& shape,
                               const Tensor& input, const Tensor& filter, const Tensor& output) {
  const Conv2d conv(shape, input.dtype());
  if (!conv.Fits() || !IsAligned(input) || !IsAligned(output)) return false;
  const Api* const api = Api::Get();
  if (api == nullptr) return false;
  int device = 0;
  TENON_RETURN_IF_ERROR(QueueStatus(cudaGetDevice(&device)));
  Descriptors d;
  if (!d.Make(*api, conv)) return false;

  State& state = GlobalState();
  MutexLock lock(state.mu);
  cudnnHandle_t& handle = state.handles[device];
  if (handle == nullptr && api->Create(&handle) != CUDNN_STATUS_SUCCESS) {
    handle = nullptr;
    return false;
  }
  if (api->SetStream(handle, StreamOf(ctx)) != CUDNN_STATUS_SUCCESS) return false;
  const auto [at, is_new] = state.found.try_emplace(KeyOf(device, pass, conv));
  if (is_new) at->second = FindAlgorithm(*api, handle, pass, d);
  if (!at->second.has_value()) return false;
  const Algorithm algorithm = *at->second;
  // What is found for floats may be meant for TF32: they keep what they were asked for with.
  if (conv.type != DType::kFloat &&
      api->SetConvolutionMathType(d.conv.get(), algorithm.math) != CUDNN_STATUS_SUCCESS) {
    return false;
  }

  // The arguments as the library wants them.
  void* x = const_cast<void*>(input.raw_data());
  void* const y = const_cast<void*>(output.raw_data());
  Tensor padded, workspace;
  TENON_ASSIGN_OR_RETURN(Tensor ordered, AllocateCopy(ctx, conv, filter.num_elements()));
  if (conv.is_padded()) {
    TENON_ASSIGN_OR_RETURN(padded, AllocateCopy(ctx, conv, conv.padded_elements()));
    if (pass != ConvPass::kInput) {
      TENON_RETURN_IF_ERROR(QueuePadded(ctx, conv, x, padded.raw_data(), false));
    }
    x = padded.raw_data();
  }
  if (pass != ConvPass::kFilter) {
    TENON_RETURN_IF_ERROR(QueueFilter(ctx, conv, filter.raw_data(), ordered.raw_data(), false));
  }
  if (algorithm.workspace > 0) {
    TENON_ASSIGN_OR_RETURN(
        workspace, ctx.AllocateTemp(DType::kUInt8, {static_cast<int64_t>(algorithm.workspace)}));
  }

  const float one = 1, zero = 0;
  const double one_double = 1, zero_double = 0;
  const bool is_double = conv.type == DType::kDouble;
  const void* const alpha = is_double ? static_cast<const void*>(&one_double) : &one;
  const void* const beta = is_double ? static_cast<const void*>(&zero_double) : &zero;
  void* const f = ordered.raw_data();
  void* const memory = workspace.valid() ? workspace.raw_data() : nullptr;
  const size_t bytes = algorithm.workspace;
  const auto xd = d.input.get(), yd = d.output.get();
  const auto fd = d.filter.get();
  const auto cd = d.conv.get();
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  switch (pass) {
    case ConvPass::kOutput:
      status = api->ConvolutionForward(handle, alpha, xd, x, fd, f, cd,
                                       static_cast<cudnnConvolutionFwdAlgo_t>(algorithm.number),
                                       memory, bytes, beta, yd, y);
      break;
    case ConvPass::kInput:
      status = api->ConvolutionBackwardData(
          handle, alpha, fd, f, yd, y, cd,
          static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm.number), memory, bytes, beta, xd, x);
      break;
    case ConvPass::kFilter:
      status = api->ConvolutionBackwardFilter(
          handle, alpha, xd, x, yd, y, cd,
          static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm.number), memory, bytes, beta, fd,
          f);
      break;
  }
  // The thousands say which kind of error it is.
  if (status / 1000 == CUDNN_STATUS_NOT_SUPPORTED / 1000) {
    at->second.reset();
    return false;
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return Internal("cuDNN cannot queue a convolution: ", api->GetErrorString(status));
  }
  if (pass == ConvPass::kInput && conv.is_padded()) {
    TENON_RETURN_IF_ERROR(QueuePadded(ctx, conv, x, const_cast<void*>(input.raw_data()), true));
  }
  if (pass == ConvPass::kFilter) {
    TENON_RETURN_IF_ERROR(QueueFilter(ctx, conv, f, const_cast<void*>(filter.raw_data()), true));
  }
  return true;
}

}  // namespace tenon::cuda
