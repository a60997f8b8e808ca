// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/device/device_groups.h"
#include "runtime/collectives/group_meeting.h"

namespace tenon {

/// Groups whose members are all in one run of this process. Costs nothing until a part starts.
class LocalGroups final : public DeviceGroups {
 public:
  /// The clock outlives the groups.
  explicit LocalGroups(Clock& clock) : clock_(clock) {}

  void Start(GroupPart part, Communicator::Done done) override;
  void Abort(int32_t group, const Status& why) override;

 private:
  Clock& clock_;
  Mutex mu_;
  std::map<int32_t, std::shared_ptr<GroupMeeting>> meetings_ ABSL_GUARDED_BY(mu_);
};

/// Gives each of the parts its result, which are those of all members of a group.
void FinishAlone(WaitingParts parts);

}  // namespace tenon
