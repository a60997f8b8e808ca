// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/buffer_versions.h"

#include <utility>

namespace tenon {

BufferVersions* BufferVersions::Begin(Buffer& first) {
  auto* const versions = new BufferVersions;
  MutexLock lock(versions->mu);
  versions->newest_ = &first;
  first.versions_ = versions;
  return versions;
}

void BufferVersions::Add(Buffer& next) {
  // The buffer before leaves when the last owner lets go, which may be the variable itself.
  newest_->superseded_.store(true, std::memory_order_release);
  ++superseded_;
  next.versions_ = this;
  Ref();
  newest_ = &next;
}

void BufferVersions::End() {
  {
    MutexLock lock(mu);
    ended_ = true;
    if (superseded_ > 0) {
      newest_->Ref();
      last_ = BufferRef(newest_);
    }
  }
  Unref();
}

BufferRef BufferVersions::Newest() {
  MutexLock lock(mu);
  newest_->Ref();
  return BufferRef(newest_);
}

void BufferVersions::Unref() {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void Buffer::Leaving::Leave() { versions_->Leave(was_superseded_); }

void BufferVersions::Leave(bool superseded) {
  if (superseded) {
    BufferRef last;  // goes outside of the lock, since it leaves too
    MutexLock lock(mu);
    if (--superseded_ == 0 && ended_) last = std::move(last_);
  }
  Unref();
}

}  // namespace tenon
