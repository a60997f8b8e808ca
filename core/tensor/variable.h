// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "core/base/interruption.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/tensor/buffer_versions.h"
#include "core/tensor/resource.h"
#include "core/tensor/tensor.h"

namespace tenon {

/// The value of a variable that handles name (VarHandleOp); base of RefVariable. Thread-safe.
///
/// A read shares the buffer, so it costs no copy; an update that finds the buffer still shared
/// with a reader writes a new buffer instead of tearing the reader's, and otherwise updates in
/// place. Nobody else ever has the buffer for longer than that: an assignment takes that of the
/// value only from a sole owner. Updates are atomic with regard to each other, and are not
/// interrupted when their step is cancelled.
class VariableResource : public Resource {
 public:
  static constexpr std::string_view kKind = "variable";

  /// `name` is for messages.
  VariableResource(DType dtype, PartialShape shape, std::string name = "")
      : VariableResource(false, dtype, std::move(shape), std::move(name)) {}
  ~VariableResource() override;

  std::string_view kind() const override { return kKind; }
  DType dtype() const { return dtype_; }
  /// The declared shape.
  const PartialShape& shape() const { return shape_; }
  const std::string& name() const { return name_; }
  bool initialized() const {
    MutexLock lock(mu_);
    return value_.valid();
  }

  /// The present value, sharing the buffer; an invalid Tensor before the first Assign. Of a
  /// RefVariable it follows the variable (Tensor::follows).
  Tensor Read() const {
    MutexLock lock(mu_);
    return value_;
  }

  /// The error of whoever needs a value before the first Assign.
  Status Uninitialized() const {
    return FailedPrecondition("Attempting to use uninitialized value ", name_);
  }

  int64_t num_bytes() const override {
    const Tensor value = Read();
    return value.valid() ? static_cast<int64_t>(value.num_bytes()) : 0;
  }

  /// Replaces the value; an invalid tensor leaves the variable without one. Takes the buffer of
  /// `value` when that is its sole owner, and otherwise copies: ResourceExhausted when there is no
  /// memory for it. What follows a RefVariable goes on to the new value, under its own shape, when
  /// that has as many elements, and otherwise stays what it was.
  Status Assign(Tensor value);

  /// Runs `update(const Tensor& current, Tensor* next) -> Status` under the lock. `next` has
  /// current's dtype and shape and is either the same buffer (no reader shares it) or a new,
  /// uninitialised one; update must write every element of it. The variable takes `next` when the
  /// result is OK, and keeps its value when it is not. FailedPrecondition when uninitialised.
  /// `update` must not renew tensors (Tensor::Renew).
  template <typename Update>
  Status Modify(Update update) {
    const InterruptibleBy nothing(nullptr);
    Tensor next;  // goes outside of the locks, as the value before
    MutexLock lock(mu_);
    const Writing writing(versions_);
    if (!value_.valid()) return Uninitialized();
    if (value_.HasOneReference()) return update(const_cast<const Tensor&>(value_), &value_);
    TENON_ASSIGN_OR_RETURN(next,
                           Tensor::Allocate(value_.allocator(), value_.dtype(), value_.shape()));
    TENON_RETURN_IF_ERROR(update(const_cast<const Tensor&>(value_), &next));
    TakeNext(&next);
    return OkStatus();
  }

  /// Runs `update(Tensor* value) -> Status` under the lock on a value that nobody else shares; for
  /// updates of a part, such as a scatter. The value is copied first when somebody shares it, and
  /// when it holds objects, whose assignment can fail half-way; the variable takes the copy when
  /// the result is OK. ResourceExhausted when there is no memory for the copy. `update` must not
  /// renew tensors.
  template <typename Update>
  Status ModifyInPlace(Update update) {
    const InterruptibleBy nothing(nullptr);
    Tensor next;  // goes outside of the locks, as the value before
    MutexLock lock(mu_);
    const Writing writing(versions_);
    if (!value_.valid()) return Uninitialized();
    if (value_.HasOneReference() && IsPlain(value_.dtype())) return update(&value_);
    TENON_ASSIGN_OR_RETURN(next, value_.Copy());
    TENON_RETURN_IF_ERROR(update(&next));
    TakeNext(&next);
    return OkStatus();
  }

 protected:
  /// `is_followed`: whether what is read follows the variable.
  VariableResource(bool is_followed, DType dtype, PartialShape shape, std::string name)
      : is_followed_(is_followed),
        dtype_(dtype),
        shape_(std::move(shape)),
        name_(std::move(name)) {}

 private:
  /// While it lives nobody gets the newest version, which may be written in place.
  class Writing {
   public:
    explicit Writing(BufferVersions* all) ABSL_NO_THREAD_SAFETY_ANALYSIS : versions_(all) {
      if (versions_ != nullptr) versions_->mu.Lock();
    }
    ~Writing() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      if (versions_ != nullptr) versions_->mu.Unlock();
    }
    Writing(const Writing&) = delete;
    Writing& operator=(const Writing&) = delete;

   private:
    BufferVersions* const versions_;
  };

  /// Makes `next`, of as many elements as the value and with a buffer of its own, the value, and
  /// leaves the value before in its place. Under a Writing.
  void TakeNext(Tensor* next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const bool is_followed_;
  const DType dtype_;
  const PartialShape shape_;
  const std::string name_;
  mutable Mutex mu_;
  Tensor value_ ABSL_GUARDED_BY(mu_);
  BufferVersions* versions_ ABSL_GUARDED_BY(mu_) = nullptr;  // of a RefVariable that has a value
};

/// A variable that references name (VariableV2). Its reads show later updates, as those of
/// TensorFlow's do, whose memory they share. Its names are apart from those of the other kind,
/// so that two programs that happen to choose one name do not change each other's values.
class RefVariable final : public VariableResource {
 public:
  static constexpr std::string_view kKind = "ref variable";
  RefVariable(DType dtype, PartialShape shape, std::string name = "")
      : VariableResource(true, dtype, std::move(shape), std::move(name)) {}
  std::string_view kind() const override { return kKind; }
};

}  // namespace tenon
