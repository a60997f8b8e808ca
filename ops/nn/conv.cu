// SPDX-License-Identifier: Apache-2.0
#include "ops/nn/conv.h"

#include "ops/cuda/kernel_types.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/register.h"
#include "ops/nn/conv_device.h"

namespace tenon::cuda {
namespace {

Status ConvolveOnDevice(KernelContext& ctx, ConvPass pass, const ConvShape& shape,
                        const Tensor& input, const Tensor& filter, const Tensor& output) {
  Tensor result = pass == ConvPass::kInput ? input : pass == ConvPass::kFilter ? filter : output;
  if (result.num_elements() == 0) return OkStatus();
  for (const Tensor* t : {&input, &filter, &output}) {
    if (t->num_elements() != 0) continue;
    return QueueStatus(cudaMemsetAsync(result.raw_data(), 0, result.num_bytes(), StreamOf(ctx)));
  }
  if (shape.groups > 1 && shape.group_inputs() == 1) {
    return ConvolveDepthwise(ctx, pass, shape, input, filter, output);
  }
  TENON_ASSIGN_OR_RETURN(const bool done, ConvolveByCudnn(ctx, pass, shape, input, filter, output));
  return done ? OkStatus() : ConvolveTiled(ctx, pass, shape, input, filter, output);
}

template <ConvPass kPass, bool kDepthwise>
Status ConvKernel(KernelContext& ctx, const Windows& w) {
  return RunConvolution(ctx, w, kPass, kDepthwise, ConvolveOnDevice);
}

template <bool kDepthwise>
void AddConvolution(OpRegistry& ops, const char* output, const char* input, const char* filter) {
  const KernelOptions floats = {.types = {{"T", DTypesOf(FloatTypes())}}};
  AddKernel(ops, output, ConvKernel<ConvPass::kOutput, kDepthwise>, floats);
  AddKernel(ops, input, ConvKernel<ConvPass::kInput, kDepthwise>, floats);
  AddKernel(ops, filter, ConvKernel<ConvPass::kFilter, kDepthwise>, floats);
}

}  // namespace
}  // namespace tenon::cuda

namespace tenon {

void RegisterCudaConvolutions(OpRegistry& ops) {
  cuda::AddConvolution<false>(ops, "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter");
  cuda::AddConvolution<false>(ops, "Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2");
  cuda::AddConvolution<true>(ops, "DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput",
                             "DepthwiseConv2dNativeBackpropFilter");
}

}  // namespace tenon
