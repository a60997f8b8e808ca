// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "core/tensor/tensor.h"

namespace tenon {

/// The tensors that one caller on this host has been told to copy out of this process's memory, by
/// its calls. Thread-safe.
class LeftTensors {
 public:
  LeftTensors() = default;
  ~LeftTensors() { Clear(); }
  LeftTensors(const LeftTensors&) = delete;
  LeftTensors& operator=(const LeftTensors&) = delete;

  /// Keeps the tensor until Drop, and says so. Callers may never take theirs: what is left for all
  /// of them stays within half of the process's memory limit, beside one tensor of any size for
  /// each. False beyond that, and for a call that has one.
  bool Keep(uint64_t call, const Tensor& tensor);
  /// The call's tensor need not stay, if there is one.
  void Drop(uint64_t call);
  void Clear();

 private:
  Mutex mu_;
  flat_hash_map<uint64_t, Tensor> tensors_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
