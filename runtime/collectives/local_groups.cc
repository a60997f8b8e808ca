// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/local_groups.h"

#include <algorithm>
#include <utility>

namespace tenon {

void FinishAlone(WaitingParts parts) {
  using Kind = Collective::Kind;
  const GroupPart& first = parts[0].part;
  const GroupLayout layout = GroupLayout::OfOneTask(static_cast<int>(parts.size()));
  switch (first.what.kind) {
    case Kind::kAllReduce: {
      StatusOr<Tensor> sum = ReduceParts(parts);
      return FinishReduce(std::move(parts), layout.MembersOf(0), std::move(sum));
    }
    case Kind::kAllGather:
      return FinishWithSame(parts, JoinParts(parts));
    case Kind::kAllToAll: {
      const StatusOr<Tensor> shares = SharesFor(layout.MembersOf(0), parts);
      if (!shares.ok()) return FinishWithSame(parts, shares);
      return FinishAllToAll(std::move(parts), layout, {*shares});
    }
    case Kind::kBroadcast: {
      const auto source = std::find_if(parts.begin(), parts.end(),
                                       [](const WaitingPart& p) { return p.part.is_source; });
      if (source != parts.end()) return FinishWithSame(parts, source->part.what.data);
      return FinishWithSame(parts, NoSource(first));
    }
    case Kind::kBarrier:
      return FinishWithSame(parts, Tensor());
  }
}

void LocalGroups::Start(GroupPart part, Communicator::Done done) {
  std::shared_ptr<GroupMeeting> meeting;
  {
    MutexLock lock(mu_);
    std::shared_ptr<GroupMeeting>& known = meetings_[part.group];
    if (known == nullptr) {
      known = std::make_shared<GroupMeeting>(clock_, part.size,
                                             GroupMeeting::Events{FinishAlone, nullptr});
      known->Expect(part.size);
    }
    meeting = known;
  }
  meeting->Start(std::move(part), std::move(done));
}

void LocalGroups::Abort(int32_t group, const Status& why) {
  std::shared_ptr<GroupMeeting> meeting;
  {
    MutexLock lock(mu_);
    const auto found = meetings_.find(group);
    if (found == meetings_.end()) return;
    meeting = found->second;
  }
  meeting->Fail(why);
}

}  // namespace tenon
