// SPDX-License-Identifier: Apache-2.0
#include "ops/tensor_array/tensor_array.h"

namespace tenon {
TensorArray::TensorArray(std::string name, const Options& options, int64_t size)
    : name_(std::move(name)), dtype_(options.dtype), options_(options), elements_(size) {}

Status TensorArray::CheckOpen() const {
  return closed_ ? Refuse(" has already been closed.") : OkStatus();
}

Status TensorArray::CheckWrite(int64_t index, const Tensor& value) const {
  if (value.dtype() != dtype_) {
    return Refuse(": TensorArray dtype is ", dtype_, " but Op is trying to write dtype ",
                  value.dtype(), ".");
  }
  const int64_t size = static_cast<int64_t>(elements_.size());
  if (index < 0 || (index >= size && !options_.dynamic_size) || index >= kMaxSize) {
    return Refuse(": Tried to write to index ", index,
                  " but array is not resizeable and size is: ", size);
  }
  const auto refuse = [&](const auto&... why) {
    return Refuse(": Could not write to TensorArray index ", index, " because ", why...);
  };
  if (!options_.element_shape.IsCompatibleWith(value.shape())) {
    return refuse("the value shape is ", value.shape(),
                  " which is incompatible with the TensorArray's inferred element shape: ",
                  options_.element_shape, " (consider setting infer_shape=False).");
  }
  if (index >= size) return OkStatus();
  if (elements_[index].cleared) return refuse("it has already been read.");
  if (elements_[index].written && !options_.is_gradient) {
    return refuse("it has already been written to.");
  }
  if (elements_[index].written && elements_[index].value.shape() != value.shape()) {
    return Refuse(": Could not aggregate to TensorArray index ", index,
                  " because the existing shape is ", elements_[index].value.shape(),
                  " but the new input shape is ", value.shape(), ".");
  }
  return OkStatus();
}

Status TensorArray::Write(const KernelContext& ctx, int64_t index, Tensor value, AddTensors add) {
  MutexLock lock(mu_);
  TENON_RETURN_IF_ERROR(CheckOpen());
  TENON_RETURN_IF_ERROR(CheckWrite(index, value));
  if (index >= static_cast<int64_t>(elements_.size())) elements_.resize(index + 1);
  Element& element = elements_[index];
  if (options_.identical_shapes) options_.element_shape = value.shape();
  if (element.written) {
    element.value.Renew();
    TENON_ASSIGN_OR_RETURN(value, add(ctx, element.value, value));
  }
  element.shape = value.shape();
  element.value = std::move(value);
  element.written = true;
  return OkStatus();
}

StatusOr<Tensor> TensorArray::Read(const KernelContext& ctx, int64_t index) {
  MutexLock lock(mu_);
  TENON_RETURN_IF_ERROR(CheckOpen());
  if (index < 0 || index >= static_cast<int64_t>(elements_.size())) {
    return Refuse(": Tried to read from index ", index, " but array size is: ", elements_.size());
  }
  Element& element = elements_[index];
  if (element.cleared) {
    return Refuse(": Could not read index ", index,
                  " twice because it was cleared after a previous read (perhaps try setting "
                  "clear_after_read = false?)");
  }
  if (!element.written) {
    const PartialShape& shape = element.shape.rank_known() ? element.shape : options_.element_shape;
    if (!shape.IsFullyKnown()) {
      return Refuse(": Could not read from TensorArray index ", index,
                    ": it was not written, and the element shape is not fully defined: ", shape);
    }
    TENON_ASSIGN_OR_RETURN(element.value, ZerosOnDevice(ctx, dtype_, shape.ToShape()));
    element.written = true;
  }
  element.value.Renew();
  if (!options_.clear_after_read) return element.value;
  element.cleared = true;
  return std::move(element.value);
}

StatusOr<int64_t> TensorArray::Size() const {
  MutexLock lock(mu_);
  TENON_RETURN_IF_ERROR(CheckOpen());
  return static_cast<int64_t>(elements_.size());
}

StatusOr<int64_t> TensorArray::JoinedSize() const {
  MutexLock lock(mu_);
  TENON_RETURN_IF_ERROR(CheckOpen());
  const auto size = static_cast<int64_t>(elements_.size());
  return options_.is_gradient ? marked_size_.value_or(size) : size;
}

void TensorArray::MarkSize() {
  MutexLock lock(mu_);
  if (!options_.is_gradient) marked_size_ = static_cast<int64_t>(elements_.size());
}

Status TensorArray::Grow(int64_t size) {
  MutexLock lock(mu_);
  TENON_RETURN_IF_ERROR(CheckOpen());
  if (size <= static_cast<int64_t>(elements_.size())) return OkStatus();
  if (!options_.dynamic_size || size > kMaxSize) {
    return Refuse(": ", size, " elements are needed, but the array is not resizeable and size is: ",
                  elements_.size());
  }
  elements_.resize(size);
  return OkStatus();
}

StatusOr<PartialShape> TensorArray::ElementShape(const PartialShape& also) const {
  MutexLock lock(mu_);
  TENON_RETURN_IF_ERROR(CheckOpen());
  return options_.element_shape.MergeWith(also);
}

StatusOr<std::shared_ptr<TensorArray>> TensorArray::MakeGradient(std::string name,
                                                                 const Shape& prefix) {
  MutexLock lock(mu_);
  TENON_RETURN_IF_ERROR(CheckOpen());
  options_.dynamic_size = false;
  Options options = options_;
  options.is_gradient = true;
  const PartialShape before(prefix);
  options.element_shape = before.ConcatWith(options_.element_shape);
  auto gradient = std::make_shared<TensorArray>(std::move(name), options,
                                                static_cast<int64_t>(elements_.size()));
  MutexLock gradient_lock(gradient->mu_);
  gradient->marked_size_ = marked_size_;
  for (size_t i = 0; i < elements_.size(); ++i) {
    gradient->elements_[i].shape = before.ConcatWith(elements_[i].shape);
  }
  return gradient;
}

void TensorArray::Close() {
  MutexLock lock(mu_);
  closed_ = true;
  elements_.clear();
}

}  // namespace tenon
