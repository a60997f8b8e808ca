// SPDX-License-Identifier: Apache-2.0
#include "ops/lookup/dense_hash_table.h"

#include <bit>
#include <cstring>

#include "ops/arguments.h"
#include "ops/elements.h"
#include "ops/fingerprint.h"
#include "ops/maths.h"

namespace tenon {
namespace {

/// More are never asked for; twice as many can still be counted.
constexpr int64_t kMostBuckets = int64_t{1} << 60;

Status CheckBuckets(int64_t count) {
  if (count >= 4 && std::has_single_bit(static_cast<uint64_t>(count))) return OkStatus();
  return InvalidArgument("Number of buckets must be at least 4 and a power of 2, got: ", count);
}

/// A part of a key, as a number.
uint64_t HashOfElement(const Tensor& t, int64_t i) {
  if (t.dtype() == DType::kString) return Murmur64(t.data<TString>()[i]);
  uint64_t hash = 0;
  Dispatch(t.dtype(), IntTypes(),
           [&]<typename T>(T) { hash = static_cast<uint64_t>(t.data<T>()[i]); });
  return hash;
}

}  // namespace

DenseHashTable::Layout::Layout(KernelConstruction& c)
    : buckets(c.Attr<int64_t>("initial_num_buckets")), max_load(c.Attr<float>("max_load_factor")) {
  if (!(max_load > 0 && max_load < 1)) {
    c.Fail(InvalidArgument("max_load_factor must be between 0 and 1, got: ", max_load));
  }
  c.Fail(CheckBuckets(buckets));
}

StatusOr<std::shared_ptr<DenseHashTable>> DenseHashTable::Create(const TableOptions& options,
                                                                 const Layout& layout,
                                                                 std::string name,
                                                                 const Tensor& empty_key,
                                                                 const Tensor& deleted_key) {
  if (options.key != DType::kString && !IsInteger(options.key)) {
    return InvalidArgument("keys must be integers or texts, found ", options.key);
  }
  if (empty_key.rank() > 1) {
    return InvalidArgument("Empty key must be a scalar or a vector, got shape ", empty_key.shape());
  }
  if (deleted_key.valid() && deleted_key.shape() != empty_key.shape()) {
    return InvalidArgument("Empty and deleted keys must have same shape, got shapes: ",
                           empty_key.shape(), " and ", deleted_key.shape());
  }
  if (deleted_key.valid() && deleted_key.Equals(empty_key)) {
    return InvalidArgument("Empty and deleted keys cannot be equal");
  }
  Tensor deleted;
  TENON_ASSIGN_OR_RETURN(const Tensor empty, empty_key.Copy());
  if (deleted_key.valid()) {
    TENON_ASSIGN_OR_RETURN(deleted, deleted_key.Copy());
  }
  const std::shared_ptr<DenseHashTable> table(
      new DenseHashTable(options, layout, std::move(name), empty, deleted));
  TENON_ASSIGN_OR_RETURN(Buckets buckets, table->FreeBuckets(layout.buckets));
  MutexLock lock(table->mu_);
  table->buckets_ = std::move(buckets);
  return table;
}

int64_t DenseHashTable::num_bytes() const {
  MutexLock lock(mu_);
  return static_cast<int64_t>(buckets_.keys.num_bytes() + buckets_.values.num_bytes());
}

int64_t DenseHashTable::size() const {
  MutexLock lock(mu_);
  return entries_;
}

uint64_t DenseHashTable::HashOf(const Tensor& keys, int64_t i) const {
  const int64_t width = key_width();
  if (width == 1) return HashOfElement(keys, i);
  uint64_t hash = 0;
  for (int64_t j = 0; j < width; ++j) {
    const uint64_t part = HashOfElement(keys, i * width + j);
    hash ^= part + 0x9e3779b97f4a7800 + (hash << 10) + (hash >> 4);
  }
  return hash;
}

bool DenseHashTable::IsSame(const Tensor& a, int64_t i, const Tensor& b, int64_t j) const {
  const int64_t width = key_width();
  if (a.dtype() == DType::kString) {
    const TString* const first = a.data<TString>() + i * width;
    return std::equal(first, first + width, b.data<TString>() + j * width);
  }
  return std::memcmp(ElementAt(a, i * width), ElementAt(b, j * width), width * SizeOf(a.dtype())) ==
         0;
}

bool DenseHashTable::IsDeleted(const Tensor& keys, int64_t i) const {
  return deleted_key_.valid() && IsSame(keys, i, deleted_key_, 0);
}

StatusOr<DimVector> DenseHashTable::CheckKeys(const Tensor& keys) const {
  const auto dims = keys.shape().dims();
  const auto batch = static_cast<size_t>(std::max(0, keys.rank() - key_shape_.rank()));
  // TensorFlow counts keys by the first dimension.
  const bool one_row = Product(dims, 1, std::max(1, static_cast<int>(batch))) == 1;
  if (!one_row || dims.subspan(batch) != key_shape_.dims()) {
    return InvalidArgument("Expected key shape ", key_shape_, " or a vector of such, got ",
                           keys.shape());
  }
  const DimVector counts(dims.begin(), dims.begin() + batch);
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(counts));
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    if (i % kStepsBetweenLooks == 0 && Interrupted()) break;
    if (IsSame(keys, i, empty_key_, 0)) {
      return InvalidArgument("Using the empty_key as a table key is not allowed");
    }
    if (IsDeleted(keys, i)) {
      return InvalidArgument("Using the deleted_key as a table key is not allowed");
    }
  }
  return counts;
}

StatusOr<DenseHashTable::Buckets> DenseHashTable::FreeBuckets(int64_t count) const {
  const int64_t width = key_width();
  TENON_ASSIGN_OR_RETURN(const Shape of_keys, Shape::Create({count, width}));
  TENON_ASSIGN_OR_RETURN(const Shape of_values, Shape::Create({count, value_width()}));
  Buckets free;
  TENON_ASSIGN_OR_RETURN(free.keys, Tensor::Allocate(CpuAllocator(), key_type(), of_keys));
  TENON_ASSIGN_OR_RETURN(free.values, Tensor::Allocate(CpuAllocator(), value_type(), of_values));
  for (int64_t i = 0; i < count; ++i) CopyElements(empty_key_, 0, &free.keys, i * width, width);
  ZeroElements(&free.values);
  return free;
}

DenseHashTable::Place DenseHashTable::PlaceOf(const Buckets& buckets, const Tensor& keys,
                                              int64_t i) const {
  const int64_t count = buckets.keys.dim(0), mask = count - 1;
  int64_t free = -1;
  auto at = static_cast<int64_t>(HashOf(keys, i) & static_cast<uint64_t>(mask));
  // The steps 1, 2, 3, ... reach every bucket once, as their number is a power of 2.
  for (int64_t step = 1; step <= count; ++step) {
    if (IsSame(buckets.keys, at, keys, i)) return {at, true};
    const bool is_empty = IsSame(buckets.keys, at, empty_key_, 0);
    if (free < 0 && (is_empty || IsDeleted(buckets.keys, at))) free = at;
    if (is_empty) break;
    at = (at + step) & mask;
  }
  return {free, false};
}

bool DenseHashTable::Put(const Tensor& keys, const Tensor& values, int64_t i,
                         Buckets* buckets) const {
  const auto [bucket, is_there] = PlaceOf(*buckets, keys, i);
  TENON_CHECK(bucket >= 0);
  const int64_t width = key_width(), value = value_width();
  // The key last: when memory runs out before, the bucket is still free.
  CopyElements(values, i * value, &buckets->values, bucket * value, value);
  if (!is_there) CopyElements(keys, i * width, &buckets->keys, bucket * width, width);
  return !is_there;
}

int64_t DenseHashTable::CountEntries(const Buckets& buckets) const {
  int64_t count = 0;
  for (int64_t i = 0; i < buckets.keys.dim(0); ++i) {
    count += !IsSame(buckets.keys, i, empty_key_, 0) && !IsDeleted(buckets.keys, i);
  }
  return count;
}

Status DenseHashTable::Grow(int64_t entries) {
  int64_t count = buckets_.keys.dim(0);
  const auto is_full = [&] {
    return static_cast<float>(entries) > static_cast<float>(count) * max_load_;
  };
  if (!is_full()) return OkStatus();
  while (is_full() && count < kMostBuckets) count *= 2;
  TENON_ASSIGN_OR_RETURN(Buckets larger, FreeBuckets(count));
  for (int64_t i = 0; i < buckets_.keys.dim(0); ++i) {
    if (IsSame(buckets_.keys, i, empty_key_, 0) || IsDeleted(buckets_.keys, i)) continue;
    Put(buckets_.keys, buckets_.values, i, &larger);
  }
  buckets_ = std::move(larger);
  return OkStatus();
}

Status DenseHashTable::OwnBuckets() {
  for (Tensor* t : {&buckets_.keys, &buckets_.values}) {
    if (t->HasOneReference()) continue;
    TENON_ASSIGN_OR_RETURN(*t, t->Copy());
  }
  return OkStatus();
}

Status DenseHashTable::Insert(const Tensor& keys, const Tensor& values) {
  TENON_RETURN_IF_ERROR(CheckTypes(keys.dtype(), values.dtype()));
  const InterruptibleBy nothing(nullptr);
  TENON_ASSIGN_OR_RETURN(const DimVector batch, CheckKeys(keys));
  TENON_RETURN_IF_ERROR(CheckValues(batch, values));
  const int64_t count = Shape(batch).num_elements();
  MutexLock lock(mu_);
  // As if none of the keys were there: what is there need not be found out first.
  TENON_ASSIGN_OR_RETURN(const int64_t entries, AddSizes(entries_, count));
  TENON_RETURN_IF_ERROR(Grow(entries));
  TENON_RETURN_IF_ERROR(OwnBuckets());
  for (int64_t i = 0; i < count; ++i) entries_ += Put(keys, values, i, &buckets_);
  return OkStatus();
}

Status DenseHashTable::Import(const Tensor& keys, const Tensor& values) {
  TENON_RETURN_IF_ERROR(CheckTypes(keys.dtype(), values.dtype()));
  if (keys.rank() != 2 || keys.dim(1) != key_width()) {
    return InvalidArgument("Expected key shape [?,", key_width(), "], got ", keys.shape());
  }
  const int64_t count = keys.dim(0);
  if (values.shape() != Shape{count, value_width()}) {
    return InvalidArgument("Expected shape [", count, ",", value_width(), "] for value, got ",
                           values.shape());
  }
  TENON_RETURN_IF_ERROR(CheckBuckets(count));
  const InterruptibleBy nothing(nullptr);
  Buckets buckets{keys, values};
  buckets.keys.Settle();
  buckets.values.Settle();
  const int64_t entries = CountEntries(buckets);
  if (entries == count) {
    return InvalidArgument("all of ", count, " buckets are taken, wanted one that is free");
  }
  MutexLock lock(mu_);
  buckets_ = std::move(buckets);
  entries_ = entries;
  return OkStatus();
}

Status DenseHashTable::Remove(const Tensor& keys) {
  TENON_RETURN_IF_ERROR(CheckTypes(keys.dtype(), value_type()));
  if (!deleted_key_.valid()) {
    return FailedPrecondition("table '", name(), "' has no key that marks what is removed");
  }
  const InterruptibleBy nothing(nullptr);
  TENON_ASSIGN_OR_RETURN(const DimVector batch, CheckKeys(keys));
  const int64_t width = key_width();
  MutexLock lock(mu_);
  TENON_RETURN_IF_ERROR(OwnBuckets());
  for (int64_t i = 0; i < Shape(batch).num_elements(); ++i) {
    const auto [bucket, is_there] = PlaceOf(buckets_, keys, i);
    if (!is_there) continue;
    CopyElements(deleted_key_, 0, &buckets_.keys, bucket * width, width);
    --entries_;
  }
  return OkStatus();
}

Status DenseHashTable::Find(KernelContext& ctx, const Tensor& keys, const Tensor& fallback) const {
  TENON_RETURN_IF_ERROR(CheckTypes(keys.dtype(), fallback.dtype()));
  TENON_ASSIGN_OR_RETURN(const DimVector batch, CheckKeys(keys));
  TENON_ASSIGN_OR_RETURN(Tensor * values, FoundValues(ctx, batch, fallback));
  const int64_t width = value_width(), count = Shape(batch).num_elements();
  const bool each = fallback.shape() == values->shape();
  MutexLock lock(mu_);
  for (int64_t i = 0; i < count; ++i) {
    if (i % kStepsBetweenLooks == 0 && Interrupted()) break;
    const auto [bucket, is_there] = PlaceOf(buckets_, keys, i);
    if (is_there) {
      CopyElements(buckets_.values, bucket * width, values, i * width, width);
    } else {
      CopyElements(fallback, each ? i * width : 0, values, i * width, width);
    }
  }
  return OkStatus();
}

Status DenseHashTable::Export(KernelContext& ctx) const {
  MutexLock lock(mu_);
  ctx.set_output(0, buckets_.keys);
  ctx.set_output(1, buckets_.values);
  return OkStatus();
}

}  // namespace tenon
