// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cudnn.h>

#include "ops/cuda/libraries.h"

namespace tenon::cuda {

/// cuDNN, for convolutions and the like. Only for files that are named *_cudnn.cu.
inline Library& Cudnn() {
  static auto* const library = new Library("libcudnn.so", CUDNN_MAJOR);
  return *library;
}

}  // namespace tenon::cuda
