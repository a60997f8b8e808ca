// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/group_meeting.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/interruption.h"
#include "core/base/strings.h"

namespace tenon {

bool GroupMeeting::is_idle() const {
  MutexLock lock(mu_);
  return waiting_.empty();
}

void GroupMeeting::Start(GroupPart part, Communicator::Done done) {
  const Cancellation* const cancellation = part.cancellation;
  std::vector<Instance> complete;
  const Status refused = Add(&part, &done, &complete);
  if (refused.ok()) {
    for (Instance& instance : complete) Complete(std::move(instance));
    return;
  }
  done(refused);
  // The groups of a cancelled run are failed by its cancellation.
  if (cancellation == nullptr || !cancellation->cancelled()) Fail(refused);
}

Status GroupMeeting::Add(GroupPart* part, Communicator::Done* done,
                         std::vector<Instance>* complete) {
  MutexLock lock(mu_);
  if (part->cancellation != nullptr && part->cancellation->cancelled()) {
    return part->cancellation->status();
  }
  TENON_RETURN_IF_ERROR(failed_);
  if (part->size < 1) {
    return InvalidArgument("group ", part->group, " has ", part->size,
                           " members, wanted 1 or more");
  }
  if (part->size != size_) {
    return InvalidArgument(part->device, " joins group ", part->group, " as one of ", part->size,
                           " members, and others as one of ", size_);
  }
  Instance& instance = waiting_[part->instance];
  TENON_RETURN_IF_ERROR(CheckFits(*part, instance.parts));
  if (instance.parts.empty()) {
    instance.number = ++count_;
    instance.timer = clock_.CallAfter(
        part->limit, [meeting = weak_from_this(), key = part->instance, number = count_] {
          if (const auto alive = meeting.lock()) alive->HandleLimit(key, number);
        });
  }
  instance.parts.push_back({std::move(*part), std::move(*done)});
  *complete = TakeComplete();
  return OkStatus();
}

void GroupMeeting::Expect(int32_t parts) {
  std::vector<Instance> complete;
  {
    MutexLock lock(mu_);
    expected_ = parts;
    complete = TakeComplete();
  }
  for (Instance& instance : complete) Complete(std::move(instance));
}

std::vector<GroupMeeting::Instance> GroupMeeting::TakeComplete() {
  std::vector<Instance> complete;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (static_cast<int32_t>(it->second.parts.size()) != expected_) {
      ++it;
      continue;
    }
    complete.push_back(std::move(it->second));
    it = waiting_.erase(it);
  }
  return complete;
}

void GroupMeeting::Complete(Instance instance) {
  clock_.CancelTimer(instance.timer);
  std::sort(
      instance.parts.begin(), instance.parts.end(),
      [](const WaitingPart& a, const WaitingPart& b) { return IsMemberBefore(a.part, b.part); });
  // The sums are other runs' too, which this one's end must not cut short.
  const InterruptibleBy nothing(nullptr);
  events_.complete(std::move(instance.parts));
}

void GroupMeeting::Fail(const Status& why) {
  std::map<int32_t, Instance> failed;
  {
    MutexLock lock(mu_);
    if (!failed_.ok()) return;
    failed_ = why;
    failed.swap(waiting_);
  }
  if (events_.failed) events_.failed(why);
  for (const auto& [key, instance] : failed) {
    clock_.CancelTimer(instance.timer);
    FinishWithSame(instance.parts, why);
  }
}

void GroupMeeting::HandleLimit(int32_t instance, int64_t number) {
  Status late;
  {
    MutexLock lock(mu_);
    const auto found = waiting_.find(instance);
    if (found == waiting_.end() || found->second.number != number) return;
    const WaitingParts& parts = found->second.parts;
    std::vector<std::string> come;
    for (const WaitingPart& p : parts) come.push_back(p.part.device);
    const GroupPart& first = parts[0].part;
    late = DeadlineExceeded(come.size(), " of the ", size_, " members have come to ",
                            InstanceName(first), " here within ", first.limit.count(),
                            " ms: ", Join(come, ", "));
  }
  Fail(late);
}

}  // namespace tenon
