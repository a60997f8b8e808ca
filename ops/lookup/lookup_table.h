// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/op/op_registry.h"
#include "core/tensor/resource.h"

namespace tenon {

/// What a node says of its table.
struct TableOptions {
  explicit TableOptions(KernelConstruction& c);

  std::string op;
  DType key, value;
  PartialShape value_shape;
  bool is_mutable;  // else it is filled once
  bool is_dense;
};

/// A table of keys and values. Thread-safe.
class LookupTable : public Resource {
 public:
  static constexpr std::string_view kKind = "lookup_table";
  static constexpr std::string_view kTypeName = "N10tensorflow6lookup15LookupInterfaceE";
  static constexpr bool kNamedByNode = false;
  using Options = TableOptions;

  LookupTable(const TableOptions& options, std::string name)
      : options_(options), name_(std::move(name)) {}
  std::string_view kind() const override { return kKind; }
  /// InvalidArgument when a node with `wanted` cannot have this table.
  Status CheckShared(const TableOptions& wanted) const;

  DType key_type() const { return options_.key; }
  DType value_type() const { return options_.value; }
  virtual int64_t size() const = 0;

  // All take keys of any shape whose last dimensions are those of one key, and values of that shape
  // without these and with the dimensions of one value; InvalidArgument for others and for other
  // dtypes.

  /// Fills a table that is filled once; one that is filled already stays as it is, and
  /// FailedPrecondition says so when its size is another. FailedPrecondition for other tables.
  virtual Status Initialize(const Tensor& keys, const Tensor& values);
  /// Adds entries or gives them new values; Unimplemented for a table that is filled once.
  virtual Status Insert(const Tensor& keys, const Tensor& values) = 0;
  /// What Export gave, as the only entries from now on; for a table that is filled once, as
  /// Initialize.
  virtual Status Import(const Tensor& keys, const Tensor& values) = 0;
  /// Removes entries; keys that are not there are passed over. Unimplemented for a table that is
  /// filled once.
  virtual Status Remove(const Tensor& keys) = 0;
  /// Output 0: the values of `keys`, or `fallback`, one for all or for each. FailedPrecondition
  /// before a table is filled that is filled once.
  virtual Status Find(KernelContext& ctx, const Tensor& keys, const Tensor& fallback) const = 0;
  /// Outputs 0 and 1: keys and values.
  virtual Status Export(KernelContext& ctx) const = 0;

 protected:
  const TableOptions& options() const { return options_; }
  const std::string& name() const { return name_; }
  /// How many elements one value has.
  int64_t value_width() const { return *options_.value_shape.num_elements(); }
  Status CheckTypes(DType key, DType value) const;
  /// The shape that values have, `batch` being that of the keys without the dimensions of one;
  /// InvalidArgument when there is none.
  StatusOr<Shape> ValuesShape(absl::Span<const int64_t> batch) const;
  /// InvalidArgument unless the table has values like these for keys of that batch shape.
  Status CheckValues(absl::Span<const int64_t> batch, const Tensor& values) const;
  /// Output 0 for the values of such keys. InvalidArgument when `fallback` is neither one value nor
  /// one for each.
  StatusOr<Tensor*> FoundValues(KernelContext& ctx, absl::Span<const int64_t> batch,
                                const Tensor& fallback) const;

 private:
  const TableOptions options_;
  const std::string name_;
};

}  // namespace tenon
