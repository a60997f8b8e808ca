// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/graph_capture.h"

#include <utility>

namespace tenon::cuda {

StatusOr<std::unique_ptr<DriverCapture>> GraphCapture::Begin(int ordinal, cudaStream_t stream,
                                                             Failure& failure) {
  if (failure.failed()) return failure.status();
  std::unique_ptr<GraphCapture> capture(new GraphCapture(ordinal, stream, failure));
  capture->Enter();
  TENON_RETURN_IF_ERROR(
      capture->Explain(cudaStreamCreateWithFlags(&capture->capturing_, cudaStreamNonBlocking)));
  // What else this thread does meanwhile, such as getting memory, is no part of it.
  const cudaError_t begun =
      cudaStreamBeginCapture(capture->capturing_, cudaStreamCaptureModeRelaxed);
  if (begun != cudaSuccess) {
    cudaStreamDestroy(std::exchange(capture->capturing_, nullptr));
    return capture->Explain(begun);
  }
  return capture;
}

GraphCapture::~GraphCapture() {
  Enter();
  cudaGraph_t graph = nullptr;
  if (capturing_ != nullptr && EndCapture(&graph) != cudaSuccess) cudaGetLastError();
  if (graph != nullptr) cudaGraphDestroy(graph);
  if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
}

void GraphCapture::Enter() const {
  if (cudaSetDevice(ordinal_) != cudaSuccess) cudaGetLastError();
}

Status GraphCapture::Explain(cudaError_t error) const {
  if (error == cudaSuccess) return OkStatus();
  cudaGetLastError();
  return Unavailable("the GPU ", failure_.gpu(),
                     " cannot capture a step: ", cudaGetErrorString(error), " (",
                     cudaGetErrorName(error), ")");
}

cudaError_t GraphCapture::EndCapture(cudaGraph_t* graph) {
  const cudaStream_t stream = std::exchange(capturing_, nullptr);
  const cudaError_t error = cudaStreamEndCapture(stream, graph);
  cudaStreamDestroy(stream);
  return error;
}

void* GraphCapture::Native() {
  Enter();
  return capturing_;
}

void GraphCapture::Copy(void* to, const void* from, size_t bytes) {
  Enter();
  status_.Update(Explain(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, capturing_)));
}

Status GraphCapture::Finish() {
  Enter();
  cudaGraph_t graph = nullptr;
  status_.Update(Explain(EndCapture(&graph)));
  if (status_.ok()) status_ = Explain(cudaGraphInstantiate(&graph_, graph, 0));
  if (graph != nullptr) cudaGraphDestroy(graph);
  return status_;
}

void GraphCapture::Queue() {
  if (failure_.failed()) return;
  Enter();
  failure_.Check(cudaGraphLaunch(graph_, stream_), "running a captured step");
}

}  // namespace tenon::cuda
