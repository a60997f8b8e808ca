// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/variable.h"

namespace tenon {

VariableResource::~VariableResource() {
  if (versions_ != nullptr) versions_->End();
}

Status VariableResource::Assign(Tensor value) {
  const InterruptibleBy nothing(nullptr);  // or the variable would get a part of the value
  if (value.valid() && (!value.OwnsBuffer() || value.buffer()->versions() != nullptr)) {
    TENON_ASSIGN_OR_RETURN(value, value.Copy());
  }
  Tensor before;  // goes outside of the lock
  MutexLock lock(mu_);
  if (versions_ != nullptr && value.valid() && value.num_elements() == value_.num_elements()) {
    const Writing writing(versions_);
    TakeNext(&value);
    before = std::move(value);
    return OkStatus();
  }
  if (versions_ != nullptr) std::exchange(versions_, nullptr)->End();
  before = std::exchange(value_, std::move(value));
  if (is_followed_ && value_.valid()) {
    versions_ = BufferVersions::Begin(*value_.buffer().get());
    value_.Follow();
  }
  return OkStatus();
}

void VariableResource::TakeNext(Tensor* next) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  if (versions_ != nullptr) {
    versions_->Add(*next->buffer().get());
    next->Follow();
  }
  std::swap(value_, *next);
}

}  // namespace tenon
