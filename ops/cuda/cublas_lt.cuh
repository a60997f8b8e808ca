// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublasLt.h>

#include "ops/cuda/libraries.h"

namespace tenon::cuda {

/// cuBLASLt, for matrix products.
inline Library& CublasLt() {
  static auto* const library = new Library("libcublasLt.so", CUBLAS_VER_MAJOR);
  return *library;
}

}  // namespace tenon::cuda
