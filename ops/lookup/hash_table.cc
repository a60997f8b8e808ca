// SPDX-License-Identifier: Apache-2.0
#include "ops/lookup/hash_table.h"

#include <algorithm>

#include "ops/elements.h"

namespace tenon {
namespace {

/// Equal for equal keys of one dtype, and for no others.
std::string_view BytesOf(const Tensor& keys, int64_t i) {
  if (keys.dtype() == DType::kString) return keys.data<TString>()[i];
  return {ElementAt(keys, i), StrideOf(keys.dtype())};
}

/// "StringKey" for messages.
std::string KeyText(const Tensor& keys, int64_t i) {
  if (keys.dtype() == DType::kString) return std::string(keys.data<TString>()[i]);
  std::string text = "?";
  Dispatch(keys.dtype(), RealTypes(),
           [&]<typename T>(T) { text = StrCat(static_cast<double>(keys.data<T>()[i])); });
  return text;
}

}  // namespace

int64_t HashTable::num_bytes() const {
  MutexLock lock(mu_);
  return static_cast<int64_t>(keys_.num_bytes() + values_.num_bytes());
}

int64_t HashTable::size() const {
  MutexLock lock(mu_);
  return static_cast<int64_t>(places_.size());
}

Status HashTable::CheckEntries(const Tensor& keys, const Tensor& values) const {
  TENON_RETURN_IF_ERROR(CheckTypes(keys.dtype(), values.dtype()));
  return CheckValues(keys.shape().dims(), values);
}

Status HashTable::CheckFilled() const {
  if (options().is_mutable || filled_) return OkStatus();
  return FailedPrecondition("Table not initialized.");
}

Status HashTable::Grow(int64_t rows) {
  const int64_t there = keys_.valid() ? keys_.dim(0) : 0;
  if (keys_.valid() && rows <= there) return OkStatus();
  const int64_t room = std::max<int64_t>({rows, 2 * there, 16});
  TENON_ASSIGN_OR_RETURN(Tensor keys, Tensor::Allocate(CpuAllocator(), options().key, {room}));
  TENON_ASSIGN_OR_RETURN(const Shape shape, ValuesShape({room}));
  TENON_ASSIGN_OR_RETURN(Tensor values, Tensor::Allocate(CpuAllocator(), options().value, shape));
  if (keys_.valid()) {
    CopyElements(keys_, 0, &keys, 0, there);
    CopyElements(values_, 0, &values, 0, values_.num_elements());
  }
  keys_ = std::move(keys);
  values_ = std::move(values);
  return OkStatus();
}

void HashTable::Clear() {
  places_.clear();
  keys_ = values_ = Tensor();
}

Status HashTable::Add(const Tensor& keys, const Tensor& values) {
  const InterruptibleBy nothing(nullptr);
  const int64_t width = value_width();
  TENON_ASSIGN_OR_RETURN(const Shape shape, ValuesShape({keys.num_elements()}));
  TENON_ASSIGN_OR_RETURN(const Tensor rows, values.Reshaped(shape));
  for (int64_t i = 0; i < keys.num_elements(); ++i) {
    const int64_t next = static_cast<int64_t>(places_.size());
    TENON_RETURN_IF_ERROR(Grow(next + 1));
    const auto [it, added] = places_.try_emplace(std::string(BytesOf(keys, i)), next);
    const int64_t place = it->second;
    if (added) CopyElements(keys, i, &keys_, place, 1);
    if (added || options().is_mutable) {
      CopyElements(values, i * width, &values_, place * width, width);
    } else if (!values_.Slice(place, place + 1).Equals(rows.Slice(i, i + 1))) {
      return FailedPrecondition(
          "HashTable has different value for same key. Key ", KeyText(keys, i), " has ",
          values_.Slice(place, place + 1).ToString(), " and trying to add another value");
    }
  }
  return OkStatus();
}

Status HashTable::Initialize(const Tensor& keys, const Tensor& values) {
  TENON_RETURN_IF_ERROR(CheckEntries(keys, values));
  if (options().is_mutable) return LookupTable::Initialize(keys, values);
  MutexLock lock(mu_);
  if (filled_) {
    const int64_t there = static_cast<int64_t>(places_.size());
    if (there == keys.num_elements()) return OkStatus();
    return FailedPrecondition("Table was already initialized with different data: it has ", there,
                              " entries, now ", keys.num_elements(), " are given");
  }
  const Status status = Add(keys, values);
  filled_ = status.ok();
  if (!filled_) Clear();
  return status;
}

Status HashTable::Insert(const Tensor& keys, const Tensor& values) {
  TENON_RETURN_IF_ERROR(CheckEntries(keys, values));
  if (!options().is_mutable)
    return Unimplemented("Insert not supported by HashTable implementations");
  MutexLock lock(mu_);
  return Add(keys, values);
}

Status HashTable::Import(const Tensor& keys, const Tensor& values) {
  if (!options().is_mutable) {
    if (keys.num_elements() > 0) return Initialize(keys, values);
    return InvalidArgument("keys and values cannot be empty tensors.");
  }
  TENON_RETURN_IF_ERROR(CheckEntries(keys, values));
  MutexLock lock(mu_);
  Clear();
  return Add(keys, values);
}

Status HashTable::Remove(const Tensor& keys) {
  TENON_RETURN_IF_ERROR(CheckTypes(keys.dtype(), options().value));
  if (!options().is_mutable)
    return Unimplemented("Remove not supported by HashTable implementations");
  const InterruptibleBy nothing(nullptr);
  const int64_t width = value_width();
  MutexLock lock(mu_);
  for (int64_t i = 0; i < keys.num_elements(); ++i) {
    const auto found = places_.find(BytesOf(keys, i));
    if (found == places_.end()) continue;
    const int64_t place = found->second, last = static_cast<int64_t>(places_.size()) - 1;
    places_.erase(found);
    if (place == last) continue;
    // The last entry takes the free place.
    places_[std::string(BytesOf(keys_, last))] = place;
    CopyElements(keys_, last, &keys_, place, 1);
    CopyElements(values_, last * width, &values_, place * width, width);
  }
  return OkStatus();
}

Status HashTable::Find(KernelContext& ctx, const Tensor& keys, const Tensor& fallback) const {
  TENON_RETURN_IF_ERROR(CheckTypes(keys.dtype(), fallback.dtype()));
  TENON_ASSIGN_OR_RETURN(Tensor * values, FoundValues(ctx, keys.shape().dims(), fallback));
  const int64_t width = value_width();
  const bool each = fallback.shape() == values->shape();
  MutexLock lock(mu_);
  TENON_RETURN_IF_ERROR(CheckFilled());
  for (int64_t i = 0; i < keys.num_elements(); ++i) {
    if (i % kStepsBetweenLooks == 0 && Interrupted()) break;
    const auto found = places_.find(BytesOf(keys, i));
    if (found != places_.end()) {
      CopyElements(values_, found->second * width, values, i * width, width);
    } else {
      CopyElements(fallback, each ? i * width : 0, values, i * width, width);
    }
  }
  return OkStatus();
}

Status HashTable::Export(KernelContext& ctx) const {
  MutexLock lock(mu_);
  TENON_RETURN_IF_ERROR(CheckFilled());
  const int64_t n = static_cast<int64_t>(places_.size());
  TENON_ASSIGN_OR_RETURN(Tensor * keys, ctx.AllocateOutput(0, {n}));
  TENON_ASSIGN_OR_RETURN(const Shape shape, ValuesShape({n}));
  TENON_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(1, shape));
  if (n == 0) return OkStatus();
  CopyElements(keys_, 0, keys, 0, n);
  CopyElements(values_, 0, values, 0, values->num_elements());
  return OkStatus();
}

}  // namespace tenon
