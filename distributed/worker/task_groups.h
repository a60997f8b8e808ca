// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/device/device.h"
#include "core/device/device_groups.h"
#include "distributed/worker/group_leader.h"
#include "distributed/worker/run_table.h"
#include "runtime/device/thread_pool.h"

namespace tenon {

/// Groups whose members may be in other tasks, and in runs of other masters: those that ask the
/// same leader for a group of the same number. Members meet within their task, and the tasks take
/// tensors from each other. A group whose members do not agree, or of which a task has died, fails
/// in all tasks, and is made anew when its members come again.
class TaskGroups final : public DeviceGroups {
 public:
  /// Everything outlives the groups. `peers` say how others are reached, and name the leader.
  TaskGroups(std::shared_ptr<const TaskPeers> peers, const std::vector<Device*>& devices,
             RunTable& steps, ThreadPool& pool, Clock& clock);
  ~TaskGroups() override;

  void Start(GroupPart part, Communicator::Done done) override;
  void Abort(int32_t group, const Status& why) override;
  /// For the leader in this task: the steps of its groups, by whose end members hear of theirs.
  GroupLeader::Steps LeaderSteps() const;
  /// Whether other tasks have not taken yet what is there for them.
  bool HasUntaken() const;
  /// Fails all groups; nothing of what they use is needed any more.
  void End(const Status& why);

 private:
  class Group;
  struct Shared;

  const std::shared_ptr<Shared> shared_;
};

}  // namespace tenon
