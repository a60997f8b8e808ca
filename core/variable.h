// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "core/interruption.h"
#include "core/mutex.h"
#include "core/resource.h"
#include "core/status.h"
#include "core/tensor.h"

namespace tenon {

/// The value of a variable that handles name (VarHandleOp); base of RefVariable. Thread-safe.
///
/// A read shares the buffer, so it costs no copy; an update that finds the buffer still shared
/// with a reader writes a new buffer instead of tearing the reader's, and otherwise updates in
/// place. Updates are atomic with regard to each other, and are not interrupted when their step is
/// cancelled.
class VariableResource : public Resource {
 public:
  static constexpr std::string_view kKind = "variable";

  /// `name` is for messages.
  VariableResource(DType dtype, PartialShape shape, std::string name = "")
      : dtype_(dtype), shape_(std::move(shape)), name_(std::move(name)) {}

  std::string_view kind() const override { return kKind; }
  DType dtype() const { return dtype_; }
  /// The declared shape.
  const PartialShape& shape() const { return shape_; }
  const std::string& name() const { return name_; }
  bool initialized() const {
    MutexLock lock(mu_);
    return value_.valid();
  }

  /// The present value, sharing the buffer; an invalid Tensor before the first Assign.
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

  /// Replaces the value; the variable shares the tensor's buffer from now on.
  void Assign(Tensor value) {
    MutexLock lock(mu_);
    std::swap(value_, value);
  }

  /// Runs `update(const Tensor& current, Tensor* next) -> Status` under the lock. `next` has
  /// current's dtype and shape and is either the same buffer (no reader shares it) or a new,
  /// uninitialised one; update must write every element of it. The variable takes `next` when the
  /// result is OK, and keeps its value when it is not. FailedPrecondition when uninitialised.
  template <typename Update>
  Status Modify(Update update) {
    const InterruptibleBy nothing(nullptr);
    MutexLock lock(mu_);
    if (!value_.valid()) return Uninitialized();
    if (value_.HasOneReference()) return update(const_cast<const Tensor&>(value_), &value_);
    TENON_ASSIGN_OR_RETURN(Tensor next,
                           Tensor::Allocate(value_.allocator(), value_.dtype(), value_.shape()));
    TENON_RETURN_IF_ERROR(update(const_cast<const Tensor&>(value_), &next));
    value_ = std::move(next);
    return OkStatus();
  }

  /// Runs `update(Tensor* value) -> Status` under the lock on a value that nobody else shares; for
  /// updates of a part, such as a scatter. The value is copied first when somebody shares it, and
  /// when it holds objects, whose assignment can fail half-way; the variable takes the copy when the
  /// result is OK. ResourceExhausted when there is no memory for the copy.
  template <typename Update>
  Status ModifyInPlace(Update update) {
    const InterruptibleBy nothing(nullptr);
    MutexLock lock(mu_);
    if (!value_.valid()) return Uninitialized();
    if (value_.HasOneReference() && IsPlain(value_.dtype())) return update(&value_);
    TENON_ASSIGN_OR_RETURN(Tensor next, value_.Copy());
    TENON_RETURN_IF_ERROR(update(&next));
    value_ = std::move(next);
    return OkStatus();
  }

 private:
  const DType dtype_;
  const PartialShape shape_;
  const std::string name_;
  mutable Mutex mu_;
  Tensor value_ ABSL_GUARDED_BY(mu_);
};

/// A variable that references name (VariableV2). Its names are apart from those of the other kind,
/// so that two programs that happen to choose one name do not change each other's values.
class RefVariable final : public VariableResource {
 public:
  static constexpr std::string_view kKind = "ref variable";
  using VariableResource::VariableResource;
  std::string_view kind() const override { return kKind; }
};

}  // namespace tenon
