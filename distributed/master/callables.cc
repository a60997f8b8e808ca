// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/callables.h"

namespace tenon {
namespace {

constexpr size_t kMaxCallables = 1 << 14;

}  // namespace

StatusOr<int64_t> Callables::Add(PreparedCall callable) {
  MutexLock lock(mu_);
  if (callables_.size() >= kMaxCallables) {
    return ResourceExhausted("the session has ", kMaxCallables,
                             " callables, as many as it may have");
  }
  callables_.emplace(next_, std::make_shared<const PreparedCall>(std::move(callable)));
  return next_++;
}

StatusOr<std::shared_ptr<const PreparedCall>> Callables::Find(int64_t handle) {
  MutexLock lock(mu_);
  if (handle < 0 || handle >= next_) return InvalidArgument("No such callable handle: ", handle);
  const auto found = callables_.find(handle);
  if (found != callables_.end()) return found->second;
  return InvalidArgument("Attempted to run callable after handle was released: ", handle);
}

void Callables::Release(int64_t handle) {
  MutexLock lock(mu_);
  callables_.erase(handle);
}

}  // namespace tenon
