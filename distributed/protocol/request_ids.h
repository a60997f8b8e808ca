// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>

#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "core/base/status.h"

namespace tenon {

/// The ids of the requests that have come lately: one that a transport delivers twice must run
/// once. Thread-safe.
class RequestIds {
 public:
  /// A request that comes so many others later is not known any more.
  static constexpr size_t kRemembered = 1 << 16;

  /// Aborted when a request with that id has come before, naming `request`; 0 is no id.
  Status Track(int64_t id, std::string_view request) {
    if (id == 0) return OkStatus();
    MutexLock lock(mu_);
    if (!ids_.insert(id).second) {
      return Aborted("The same ", request, " request was received twice. request_id: ", id);
    }
    order_.push_back(id);
    if (order_.size() > kRemembered) {
      ids_.erase(order_.front());
      order_.pop_front();
    }
    return OkStatus();
  }

 private:
  Mutex mu_;
  flat_hash_set<int64_t> ids_ ABSL_GUARDED_BY(mu_);
  std::deque<int64_t> order_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
