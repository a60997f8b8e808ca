// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/mutex.h"
#include "ops/lookup/lookup_table.h"

namespace tenon {

/// TensorFlow's MutableDenseHashTable: keys and values, each a scalar or a vector, in buckets that
/// are searched by open addressing. Export gives the buckets as they are, the free ones too, and
/// Import takes them: which bucket a key is in is the same as in TensorFlow. Thread-safe.
class DenseHashTable final : public LookupTable {
 public:
  /// What a node says of its table beside TableOptions.
  struct Layout {
    explicit Layout(KernelConstruction& c);

    int64_t buckets;
    float max_load;
  };

  /// A table without entries. `empty_key` and `deleted_key`, which may be invalid when nothing is
  /// ever removed, mark free buckets: they are no keys.
  static StatusOr<std::shared_ptr<DenseHashTable>> Create(const TableOptions& options,
                                                          const Layout& layout, std::string name,
                                                          const Tensor& empty_key,
                                                          const Tensor& deleted_key);

  int64_t num_bytes() const override;
  int64_t size() const override;
  Status Insert(const Tensor& keys, const Tensor& values) override;
  Status Import(const Tensor& keys, const Tensor& values) override;
  Status Remove(const Tensor& keys) override;
  Status Find(KernelContext& ctx, const Tensor& keys, const Tensor& fallback) const override;
  Status Export(KernelContext& ctx) const override;

 private:
  /// The buckets. Dimension 0 of both tensors is their number, dimension 1 what one holds.
  struct Buckets {
    Tensor keys, values;
  };
  /// Where a key is, or would be put.
  struct Place {
    int64_t bucket;
    bool is_there;
  };

  DenseHashTable(const TableOptions& options, const Layout& layout, std::string name,
                 const Tensor& empty_key, const Tensor& deleted_key)
      : LookupTable(options, std::move(name)),
        max_load_(layout.max_load),
        key_shape_(empty_key.shape()),
        empty_key_(empty_key),
        deleted_key_(deleted_key) {}

  int64_t key_width() const { return key_shape_.num_elements(); }
  uint64_t HashOf(const Tensor& keys, int64_t i) const;
  bool IsSame(const Tensor& a, int64_t i, const Tensor& b, int64_t j) const;
  bool IsDeleted(const Tensor& keys, int64_t i) const;
  /// The dimensions of `keys` before those of one key. InvalidArgument when they are not keys of
  /// the table, or one of them marks a free bucket.
  StatusOr<DimVector> CheckKeys(const Tensor& keys) const;
  StatusOr<Buckets> FreeBuckets(int64_t count) const;
  Place PlaceOf(const Buckets& buckets, const Tensor& keys, int64_t i) const;
  /// Makes key i with its value an entry; true when it was none before.
  bool Put(const Tensor& keys, const Tensor& values, int64_t i, Buckets* buckets) const;
  int64_t CountEntries(const Buckets& buckets) const;
  /// Makes room for as many entries.
  Status Grow(int64_t entries) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Makes the buckets the table's alone, as whoever got them by Export keeps what they were.
  Status OwnBuckets() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const float max_load_;
  const Shape key_shape_;
  const Tensor empty_key_, deleted_key_;
  mutable Mutex mu_;
  Buckets buckets_ ABSL_GUARDED_BY(mu_);
  int64_t entries_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace tenon
