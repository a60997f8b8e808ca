// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "runtime/accelerator/stream_driver.h"
#include "runtime/cuda/failure.h"

namespace tenon::cuda {

/// A CUDA graph, captured from a stream of its own so that other threads may go on queueing.
class GraphCapture final : public DriverCapture {
 public:
  /// To be queued on `stream`, of the GPU `ordinal`. `failure` must outlive it.
  static StatusOr<std::unique_ptr<DriverCapture>> Begin(int ordinal, cudaStream_t stream,
                                                        Failure& failure);
  ~GraphCapture() override;

  void* Native() override;
  void Copy(void* to, const void* from, size_t bytes) override;
  Status Finish() override;
  void Queue() override;

 private:
  GraphCapture(int ordinal, cudaStream_t stream, Failure& failure)
      : ordinal_(ordinal), stream_(stream), failure_(failure) {}
  void Enter() const;
  /// What CUDA says of a capture is no failure of the GPU: the work can be queued without.
  Status Explain(cudaError_t error) const;
  cudaError_t EndCapture(cudaGraph_t* graph);

  const int ordinal_;
  const cudaStream_t stream_;
  Failure& failure_;
  cudaStream_t capturing_ = nullptr;
  Status status_;
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace tenon::cuda
