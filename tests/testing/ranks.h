// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/strings.h"
#include "runtime/accelerator/stream_device.h"
#include "runtime/collectives/collective_queue.h"
#include "runtime/device/machine_clock.h"
#include "runtime/gloo/gloo_backend.h"
#include "tests/testing/simulated_ranks.h"

namespace tenon::testing {

/// The store of ranks that are threads of one process.
class MemoryStore final : public KeyValueStore {
 public:
  Status Put(const std::string& key, const std::string& value, std::chrono::milliseconds) override {
    MutexLock lock(mu_);
    const auto [it, added] = values_.emplace(key, value);
    changed_.NotifyAll();
    if (!added && it->second != value) return AlreadyExists(key);
    return OkStatus();
  }
  Status Replace(const std::string& key, const std::string& value,
                 std::chrono::milliseconds) override {
    MutexLock lock(mu_);
    values_[key] = value;
    changed_.NotifyAll();
    return OkStatus();
  }
  StatusOr<std::string> Get(const std::string& key, std::chrono::milliseconds limit) override {
    const Clock::Time end = MachineClock().Now() + limit;
    MutexLock lock(mu_);
    while (true) {
      const auto it = values_.find(key);
      if (it != values_.end()) return it->second;
      if (!MachineClock().WaitUntil(changed_, mu_, end)) return DeadlineExceeded("no ", key);
    }
  }

 private:
  Mutex mu_;
  CondVar changed_;
  std::map<std::string, std::string> values_ ABSL_GUARDED_BY(mu_);
};

/// Runs `body` on so many ranks, each a thread with a communicator over connections of Gloo, and
/// gives how it ended on each. They join by the simulated devices that `device_of` gives, too. A
/// short `limit` does not bound how long they take to come together at first.
inline std::vector<Status> RunRanks(int size,
                                    const std::function<Status(Communicator& ranks)>& body,
                                    std::chrono::milliseconds limit = std::chrono::seconds(30),
                                    const std::function<void(const std::string& line)>& notice = {},
                                    const std::function<StreamDevice*(int rank)>& device_of = {}) {
  const auto store = std::make_shared<MemoryStore>();
  std::vector<Status> ends(static_cast<size_t>(size));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      CollectiveBackends backends;
      StreamDevice* const device = device_of ? device_of(rank) : nullptr;
      const auto join = [=](int64_t generation) -> StatusOr<CollectiveBackends> {
        constexpr std::chrono::milliseconds kPatience = std::chrono::seconds(30);
        const RankOptions own = {
            .rank = rank,
            .size = size,
            .store = store.get(),
            .generation = generation,
            .start_limit = generation == 0 ? std::max(limit, kPatience) : limit};
        CollectiveBackends joined;
        TENON_ASSIGN_OR_RETURN(joined.host, JoinByGloo(own));
        if (device != nullptr) {
          RankOptions on_device = own;
          on_device.device = device;
          TENON_ASSIGN_OR_RETURN(joined.device, JoinBySimulatedDevice(on_device, JoinByGloo));
        }
        return joined;
      };
      if (size > 1) {
        auto joined = join(0);
        ends[static_cast<size_t>(rank)] = joined.status();
        if (!joined.ok()) return;
        backends = *std::move(joined);
      }
      CollectiveQueue queue(std::move(backends),
                            {.rank = rank,
                             .size = size,
                             .local_rank = rank,
                             .local_size = size,
                             .limit = limit,
                             .notice = notice,
                             .store = store,
                             .join = join,
                             .device_memory = device == nullptr ? nullptr : &device->allocator(),
                             .clock = &MachineClock()});
      ends[static_cast<size_t>(rank)] = body(queue);
    });
  }
  threads.clear();
  return ends;
}

}  // namespace tenon::testing
