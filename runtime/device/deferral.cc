// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/deferral.h"

#include <utility>
#include <vector>

namespace tenon {
namespace {

thread_local int depth = 0;
thread_local std::vector<std::function<void()>> deferred;

}  // namespace

DeferralScope::DeferralScope() { ++depth; }

DeferralScope::~DeferralScope() {
  if (depth == 1) RunNow();
  --depth;
}

bool DeferralScope::Empty() { return deferred.empty(); }

void DeferralScope::RunNow() {
  while (!deferred.empty()) {
    // A task may put off others.
    for (const auto& task : std::exchange(deferred, {})) task();
  }
}

void Defer(std::function<void()> task) {
  if (depth == 0) return task();
  deferred.push_back(std::move(task));
}

}  // namespace tenon
