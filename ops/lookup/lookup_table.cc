// SPDX-License-Identifier: Apache-2.0
#include "ops/lookup/lookup_table.h"

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

LookupTable::Options::Options(KernelConstruction& c)
    : op(c.op()),
      key(c.Attr<DType>("key_dtype")),
      value(c.Attr<DType>("value_dtype")),
      value_shape(c.attrs().GetOr("value_shape", PartialShape(Shape()))),
      is_mutable(!op.starts_with("HashTable")) {
  if (!value_shape.IsFullyKnown()) {
    c.Fail(InvalidArgument("value_shape must be fully known, found ", value_shape));
  }
  if (op.starts_with("MutableHashTableOfTensors") && value_shape.rank() != 1) {
    c.Fail(InvalidArgument("Default value must be a vector, got shape ", value_shape));
  }
  if (key == DType::kResource || key == DType::kVariant || value == DType::kResource ||
      value == DType::kVariant) {
    c.Fail(InvalidArgument("a table cannot have keys of ", key, " and values of ", value));
  }
}

int64_t LookupTable::num_bytes() const {
  MutexLock lock(mu_);
  return static_cast<int64_t>(keys_.num_bytes() + values_.num_bytes());
}

int64_t LookupTable::size() const {
  MutexLock lock(mu_);
  return static_cast<int64_t>(places_.size());
}

Status LookupTable::CheckShared(const Options& wanted) const {
  if (options_.is_mutable == wanted.is_mutable && options_.value_shape == wanted.value_shape) {
    return CheckTypes(wanted.key, wanted.value);
  }
  return InvalidArgument("Shared table '", name_, "' is a ", options_.op, " of values of shape ",
                         options_.value_shape, ", requested was a ", wanted.op, " of ",
                         wanted.value_shape);
}

Status LookupTable::CheckTypes(DType key, DType value) const {
  if (key == options_.key && value == options_.value) return OkStatus();
  return InvalidArgument("Conflicting key/value dtypes ", key, "->", value, " with ", options_.key,
                         "->", options_.value, " for table ", name_);
}

Shape LookupTable::ValuesShape(const Shape& keys) const {
  return Shape(Concat(keys.dims(), options_.value_shape.dims()));
}

Status LookupTable::CheckValues(const Tensor& keys, const Tensor& values) const {
  TENON_RETURN_IF_ERROR(CheckTypes(keys.dtype(), values.dtype()));
  const PartialShape wanted(Concat(keys.shape().dims(), options_.value_shape.dims()));
  if (wanted == PartialShape(values.shape())) return OkStatus();
  return InvalidArgument("Expected shape ", wanted, " for value, got ", values.shape());
}

Status LookupTable::CheckFilled() const {
  if (options_.is_mutable || filled_) return OkStatus();
  return FailedPrecondition("Table not initialized.");
}

Status LookupTable::Grow(int64_t rows) {
  const int64_t there = keys_.valid() ? keys_.dim(0) : 0;
  if (keys_.valid() && rows <= there) return OkStatus();
  const int64_t room = std::max<int64_t>({rows, 2 * there, 16});
  TENON_ASSIGN_OR_RETURN(Tensor keys, Tensor::Allocate(CpuAllocator(), options_.key, {room}));
  TENON_ASSIGN_OR_RETURN(const Shape shape,
                         Shape::Create(Concat({room}, options_.value_shape.dims())));
  TENON_ASSIGN_OR_RETURN(Tensor values, Tensor::Allocate(CpuAllocator(), options_.value, shape));
  if (keys_.valid()) {
    CopyElements(keys_, 0, &keys, 0, there);
    CopyElements(values_, 0, &values, 0, values_.num_elements());
  }
  keys_ = std::move(keys);
  values_ = std::move(values);
  return OkStatus();
}

void LookupTable::Clear() {
  places_.clear();
  keys_ = values_ = Tensor();
}

Status LookupTable::Add(const Tensor& keys, const Tensor& values) {
  const InterruptibleBy nothing(nullptr);
  const int64_t width = *options_.value_shape.num_elements();
  const StatusOr<Tensor> rows = values.Reshaped(ValuesShape({keys.num_elements()}));
  for (int64_t i = 0; i < keys.num_elements(); ++i) {
    const int64_t next = static_cast<int64_t>(places_.size());
    TENON_RETURN_IF_ERROR(Grow(next + 1));
    const auto [it, added] = places_.try_emplace(std::string(BytesOf(keys, i)), next);
    const int64_t place = it->second;
    if (added) CopyElements(keys, i, &keys_, place, 1);
    if (added || options_.is_mutable) {
      CopyElements(values, i * width, &values_, place * width, width);
    } else if (!values_.Slice(place, place + 1).Equals(rows->Slice(i, i + 1))) {
      return FailedPrecondition(
          "HashTable has different value for same key. Key ", KeyText(keys, i), " has ",
          values_.Slice(place, place + 1).ToString(), " and trying to add another value");
    }
  }
  return OkStatus();
}

Status LookupTable::Initialize(const Tensor& keys, const Tensor& values) {
  TENON_RETURN_IF_ERROR(CheckValues(keys, values));
  MutexLock lock(mu_);
  if (options_.is_mutable) {
    return FailedPrecondition("table '", name_, "' is a ", options_.op,
                              ", which is not initialized but inserted into");
  }
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

Status LookupTable::Insert(const Tensor& keys, const Tensor& values) {
  TENON_RETURN_IF_ERROR(CheckValues(keys, values));
  if (!options_.is_mutable)
    return Unimplemented("Insert not supported by HashTable implementations");
  MutexLock lock(mu_);
  return Add(keys, values);
}

Status LookupTable::Import(const Tensor& keys, const Tensor& values) {
  if (!options_.is_mutable) return Initialize(keys, values);
  TENON_RETURN_IF_ERROR(CheckValues(keys, values));
  MutexLock lock(mu_);
  Clear();
  return Add(keys, values);
}

Status LookupTable::Remove(const Tensor& keys) {
  TENON_RETURN_IF_ERROR(CheckTypes(keys.dtype(), options_.value));
  if (!options_.is_mutable)
    return Unimplemented("Remove not supported by HashTable implementations");
  const InterruptibleBy nothing(nullptr);
  const int64_t width = *options_.value_shape.num_elements();
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

Status LookupTable::Find(const Tensor& keys, const Tensor& fallback, Tensor* values) const {
  TENON_RETURN_IF_ERROR(CheckTypes(keys.dtype(), fallback.dtype()));
  const int64_t width = *options_.value_shape.num_elements();
  const bool each = fallback.shape() == values->shape();
  if (!each && PartialShape(fallback.shape()) != options_.value_shape) {
    return InvalidArgument("Expected shape ", options_.value_shape, " or ", values->shape(),
                           " for default value, got ", fallback.shape());
  }
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

Status LookupTable::Export(KernelContext& ctx) const {
  MutexLock lock(mu_);
  TENON_RETURN_IF_ERROR(CheckFilled());
  const int64_t n = static_cast<int64_t>(places_.size());
  TENON_ASSIGN_OR_RETURN(Tensor * keys, ctx.AllocateOutput(0, {n}));
  TENON_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(1, ValuesShape({n})));
  if (n == 0) return OkStatus();
  CopyElements(keys_, 0, keys, 0, n);
  CopyElements(values_, 0, values, 0, values->num_elements());
  return OkStatus();
}

}  // namespace tenon
