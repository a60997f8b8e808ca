// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "ops/lookup/lookup_table.h"

namespace tenon {

/// A table of scalar keys: TensorFlow's HashTable, which is filled once, and MutableHashTable,
/// whose values may be tensors of one shape. Its entries stand in the order in which they came.
/// Thread-safe.
class HashTable final : public LookupTable {
 public:
  using LookupTable::LookupTable;
  int64_t num_bytes() const override;
  int64_t size() const override;
  Status Initialize(const Tensor& keys, const Tensor& values) override;
  Status Insert(const Tensor& keys, const Tensor& values) override;
  Status Import(const Tensor& keys, const Tensor& values) override;
  Status Remove(const Tensor& keys) override;
  Status Find(KernelContext& ctx, const Tensor& keys, const Tensor& fallback) const override;
  Status Export(KernelContext& ctx) const override;

 private:
  Status CheckEntries(const Tensor& keys, const Tensor& values) const;
  Status CheckFilled() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Adds or replaces; in a table that is filled once, a key with another value is an error.
  Status Add(const Tensor& keys, const Tensor& values) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status Grow(int64_t rows) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Clear() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;
  /// From the bytes of a key to its place in keys_ and values_, which may have room for more.
  StringMap<int64_t> places_ ABSL_GUARDED_BY(mu_);
  Tensor keys_ ABSL_GUARDED_BY(mu_);
  Tensor values_ ABSL_GUARDED_BY(mu_);
  bool filled_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace tenon
