// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "runtime/collectives/group_parts.h"

namespace tenon {

/// Where the parts of a group's members come together that are in this process. Thread-safe; timers
/// that have begun keep it.
class GroupMeeting final : public std::enable_shared_from_this<GroupMeeting> {
 public:
  struct Events {
    /// All parts of an instance that are expected here have come.
    std::function<void(WaitingParts parts)> complete;
    /// Once, after which every part fails with `why`; may be null.
    std::function<void(const Status& why)> failed;
  };

  /// A meeting of the group's so many members. The clock outlives it.
  GroupMeeting(Clock& clock, int32_t size, Events events)
      : clock_(clock), size_(size), events_(std::move(events)) {}

  int32_t size() const { return size_; }
  /// Whether no part waits.
  bool is_idle() const;
  /// Adds a part (DeviceGroups::Start).
  void Start(GroupPart part, Communicator::Done done);
  /// From now on so many parts of an instance come here; before it is called, none is complete.
  void Expect(int32_t parts);
  void Fail(const Status& why);

 private:
  struct Instance {
    WaitingParts parts;
    Clock::Timer timer = 0;
    int64_t number = 0;  // tells uses of the same instance apart
  };

  /// Takes both, or refuses the part; `complete` gets what is complete by it.
  Status Add(GroupPart* part, Communicator::Done* done, std::vector<Instance>* complete);
  void HandleLimit(int32_t instance, int64_t number);
  void Complete(Instance instance);
  /// The instances that are complete, which wait no more.
  std::vector<Instance> TakeComplete() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Clock& clock_;
  const int32_t size_;
  const Events events_;
  mutable Mutex mu_;
  int32_t expected_ ABSL_GUARDED_BY(mu_) = -1;
  std::map<int32_t, Instance> waiting_ ABSL_GUARDED_BY(mu_);
  int64_t count_ ABSL_GUARDED_BY(mu_) = 0;
  Status failed_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
