// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "core/op/kernel.h"
#include "ops/queues/waiting_resource.h"

// What staging areas and staging maps have in common: stores of tensors that nodes find by name.

namespace tenon {

/// A store for at most so many elements and bytes; 0: no limit.
class StagingStore : public WaitingResource {
 public:
  static constexpr int kPuts = 0, kTakes = 1, kPeeks = 2;

  StagingStore(int64_t capacity, int64_t memory_limit)
      : capacity_(capacity), memory_limit_(memory_limit) {}
  int64_t num_bytes() const final {
    MutexLock lock(mu_);
    return bytes_;
  }
  int64_t size() const {
    MutexLock lock(mu_);
    return NumElements();
  }
  void Clear() {
    (void)Apply([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      ClearElements();
      bytes_ = 0;
      return OkStatus();
    });
  }

  // For waiting operations.

  /// Whether so many bytes can be put in now; an error where they never can.
  StatusOr<bool> HasRoomFor(int64_t bytes) const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (memory_limit_ != 0 && bytes > memory_limit_) {
      return ResourceExhausted("Attempted to insert tensors with combined size of '", bytes,
                               "' bytes into Staging Area with a memory limit of '", memory_limit_,
                               "'.");
    }
    return (capacity_ == 0 || NumElements() < capacity_) &&
           (memory_limit_ == 0 || bytes_ + bytes <= memory_limit_);
  }

 protected:
  virtual int64_t NumElements() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  virtual void ClearElements() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  /// Counts bytes that were put in, or taken out where there are less than none.
  void AddBytes(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { bytes_ += bytes; }

 private:
  const int64_t capacity_, memory_limit_;
  int64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

/// What a node says of its store; the first one makes it.
template <typename Store>
struct StoreName : KernelState {
  explicit StoreName(KernelConstruction& c)
      : container(c.Attr<std::string>("container")),
        name(c.Attr<std::string>("shared_name")),
        capacity(c.Attr<int64_t>("capacity")),
        memory_limit(c.Attr<int64_t>("memory_limit")) {
    if (name.empty()) name = c.name();
  }
  StatusOr<std::shared_ptr<Store>> Find(const KernelContext& ctx) const {
    return ctx.resources().LookupOrCreate<Store>(
        container, name, [&] { return std::make_shared<Store>(capacity, memory_limit); });
  }

  std::string container, name;
  int64_t capacity, memory_limit;
};

/// Gives what `Size` says of the store, as an int32 scalar.
template <typename Store, auto Size>
Status StoreSizeKernel(KernelContext& ctx, const StoreName<Store>& name) {
  TENON_ASSIGN_OR_RETURN(const auto store, name.Find(ctx));
  return ctx.Return(Tensor::Scalar(static_cast<int32_t>(((*store).*Size)())));
}

template <typename Store>
Status ClearStoreKernel(KernelContext& ctx, const StoreName<Store>& name) {
  TENON_ASSIGN_OR_RETURN(const auto store, name.Find(ctx));
  store->Clear();
  return OkStatus();
}

}  // namespace tenon
