// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/hash_map.h"
#include "core/mutex.h"
#include "core/op_registry.h"
#include "core/resource.h"

namespace tenon {

/// A table of scalar keys and values: TensorFlow's HashTable, which is filled once, and
/// MutableHashTable, whose values may be tensors of one shape. Thread-safe.
class LookupTable final : public Resource {
 public:
  static constexpr std::string_view kKind = "lookup_table";
  static constexpr std::string_view kTypeName = "N10tensorflow6lookup15LookupInterfaceE";
  static constexpr bool kNamedByNode = false;

  /// What a node says of its table.
  struct Options {
    explicit Options(KernelConstruction& c);

    std::string op;
    DType key, value;
    PartialShape value_shape;
    bool is_mutable;
  };

  LookupTable(const Options& options, std::string name)
      : options_(options), name_(std::move(name)) {}
  std::string_view kind() const override { return kKind; }
  int64_t num_bytes() const override;
  /// InvalidArgument when a node with `wanted` cannot have this table.
  Status CheckShared(const Options& wanted) const;

  DType key_type() const { return options_.key; }
  DType value_type() const { return options_.value; }
  int64_t size() const;

  // All take keys of any shape, and values of that shape and then the table's; InvalidArgument for
  // others and for other dtypes.

  /// Fills a table that is filled once; one that is filled already stays as it is, and
  /// FailedPrecondition says so when its size is another.
  Status Initialize(const Tensor& keys, const Tensor& values);
  /// Adds entries or gives them new values; Unimplemented for a table that is filled once.
  Status Insert(const Tensor& keys, const Tensor& values);
  /// The only entries from now on; for a table that is filled once, as Initialize.
  Status Import(const Tensor& keys, const Tensor& values);
  Status Remove(const Tensor& keys);
  /// Makes `values` those of `keys`, or `fallback`, one for all or for each. FailedPrecondition
  /// before the table is filled.
  Status Find(const Tensor& keys, const Tensor& fallback, Tensor* values) const;
  /// Outputs 0 and 1: keys and values, in the order in which they came.
  Status Export(KernelContext& ctx) const;
  /// The shape that the values of `keys` have.
  Shape ValuesShape(const Shape& keys) const;

 private:
  Status CheckTypes(DType key, DType value) const;
  Status CheckValues(const Tensor& keys, const Tensor& values) const;
  Status CheckFilled() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Adds or replaces; in a table that is filled once, a key with another value is an error.
  Status Add(const Tensor& keys, const Tensor& values) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status Grow(int64_t rows) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Clear() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  const std::string name_;
  mutable Mutex mu_;
  /// From the bytes of a key to its place in keys_ and values_, which may have room for more.
  StringMap<int64_t> places_ ABSL_GUARDED_BY(mu_);
  Tensor keys_ ABSL_GUARDED_BY(mu_);
  Tensor values_ ABSL_GUARDED_BY(mu_);
  bool filled_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace tenon
