// SPDX-License-Identifier: Apache-2.0
#include "distributed/worker/group_leader.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "core/base/strings.h"
#include "core/device/device_name.h"
#include "runtime/collectives/group_parts.h"

namespace tenon {
namespace {

/// Members that come so long after one of TensorFlow's are in the same step.
constexpr std::chrono::seconds kRefusal{10};

}  // namespace

std::string GroupLeaderOf(const ClusterSpec& cluster) {
  const auto& jobs = cluster.jobs();
  for (const char* job : {"chief", "master", "worker"}) {
    const auto found = jobs.find(job);
    if (found != jobs.end() && !found->second.empty()) {
      return TaskName(job, found->second.begin()->first);
    }
  }
  for (const auto& [job, tasks] : jobs) {
    if (!tasks.empty()) return TaskName(job, tasks.begin()->first);
  }
  return "";
}

std::string GroupStep::ToString() const {
  return StrCat(kGroupMark, step_id, ":", leader_incarnation);
}

std::optional<GroupStep> GroupStep::Parse(std::string_view text) {
  if (!text.starts_with(kGroupMark)) return std::nullopt;
  text.remove_prefix(sizeof(kGroupMark) - 1);
  const size_t colon = text.find(':');
  GroupStep step;
  if (colon == std::string_view::npos ||
      !absl::SimpleAtoi(ToAbsl(text.substr(0, colon)), &step.step_id) ||
      !absl::SimpleAtoi(ToAbsl(text.substr(colon + 1)), &step.leader_incarnation)) {
    return std::nullopt;
  }
  return step;
}

GroupLeader::~GroupLeader() {
  std::map<int32_t, Group> groups;
  {
    MutexLock lock(mu_);
    groups.swap(groups_);
  }
  for (const auto& [key, group] : groups) {
    for (const auto& [device, waiting] : group.members) {
      End(waiting, Cancelled("the leader of group ", key, " ends"));
    }
  }
}

void GroupLeader::End(const Waiting& waiting, const Status& status) {
  if (waiting.token != Cancellation::kAlreadyCancelled) {
    waiting.cancellation->Deregister(waiting.token);
  }
  waiting.done(status);
}

void GroupLeader::Complete(const CompleteGroupRequest& request, CompleteGroupResponse* response,
                           Cancellation* cancellation, Done done) {
  // A copy: once the call waits, another one may end it, and the request with it.
  const DeviceAttributes device = request.device_attributes();
  const int32_t key = request.group_key(), size = request.group_size();
  if (device.name().empty()) {
    return done(Internal("a CompleteGroupRequest for group ", key, " names no device"));
  }
  if (!device.physical_device_desc().starts_with(kGroupMark)) return Refuse(request, done);
  if (size == 0) {
    TakeBack(key, device);
    return done(OkStatus());
  }
  std::vector<Waiting> over;  // those that get `status`
  Status status;
  std::vector<std::pair<int32_t, int64_t>> outlived;  // groups and their steps
  int64_t step_id = 0;                                // of a group that is made
  {
    MutexLock lock(mu_);
    if (const auto refused = refused_.find(key);
        refused != refused_.end() && clock_.Now() < refused->second.until) {
      status = refused->second.why;
    }
    const int64_t number = ++count_;
    Cancellation::Token token = Cancellation::kAlreadyCancelled;
    if (cancellation != nullptr && status.ok()) {
      token = cancellation->Register([this, key, name = device.name(), number](const Status& why) {
        GiveUp(key, name, number, why);
      });
      if (token == Cancellation::kAlreadyCancelled) status = cancellation->status();
    }
    if (const auto made = made_.find(key); made != made_.end()) {
      outlived.push_back(*made);
      made_.erase(made);
    }
    Group& group = groups_[key];
    Waiting own{device, response, cancellation, token, std::move(done), number};
    const auto before = group.members.find(device.name());
    if (!status.ok()) {
      over.push_back(std::move(own));
      if (group.members.empty()) groups_.erase(key);
    } else if (!group.members.empty() && group.size != size) {
      status = InvalidArgument(device.name(), " joins group ", key, " as one of ", size,
                               " members, and ", group.members.begin()->first, " as one of ",
                               group.size);
      for (auto& [name, waiting] : group.members) over.push_back(std::move(waiting));
      over.push_back(std::move(own));
      groups_.erase(key);
    } else if (before != group.members.end()) {
      status = Aborted(device.name(), " has joined group ", key, " again");
      over.push_back(std::move(before->second));
      before->second = std::move(own);
    } else {
      group.size = size;
      group.members.emplace(device.name(), std::move(own));
      if (static_cast<int32_t>(group.members.size()) >= size) {
        for (auto& [name, waiting] : group.members) over.push_back(std::move(waiting));
        groups_.erase(key);
        // Below 2^56, as other steps' numbers.
        step_id = static_cast<int64_t>(entropy_.NextNonZero() >> 8);
        Keep(key, step_id, &outlived);
      }
    }
  }
  for (const auto& [group, step] : outlived) {
    steps_.end(step, group == key ? Aborted(device.name(), " has joined group ", group,
                                            " again, as one of ", size, " members")
                                  : Aborted("group ", group, " was the oldest of ", kMaxGroups));
  }
  if (step_id != 0) {
    steps_.begin(step_id);
    Answer(request, step_id, &over);
  }
  for (const Waiting& waiting : over) End(waiting, status);
}

void GroupLeader::Keep(int32_t key, int64_t step_id,
                       std::vector<std::pair<int32_t, int64_t>>* outlived) {
  made_[key] = step_id;
  oldest_.emplace_back(key, step_id);
  if (oldest_.size() <= kMaxGroups) return;
  const auto [group, step] = oldest_.front();
  oldest_.pop_front();
  const auto made = made_.find(group);
  if (made == made_.end() || made->second != step) return;
  outlived->push_back(*made);
  made_.erase(made);
}

void GroupLeader::Answer(const CompleteGroupRequest& request, int64_t step_id,
                         std::vector<Waiting>* members) const {
  std::sort(members->begin(), members->end(), [](const Waiting& a, const Waiting& b) {
    return IsDeviceBefore(a.device.name(), b.device.name());
  });
  std::set<std::string_view> tasks;
  CompleteGroupResponse answer;
  for (const Waiting& member : *members) {
    tasks.insert(TaskPartOf(member.device.name()));
    *answer.add_device_attributes() = member.device;
  }
  answer.set_group_key(request.group_key());
  answer.set_group_size(request.group_size());
  answer.set_device_type(request.device_type());
  answer.set_num_tasks(static_cast<int32_t>(tasks.size()));
  answer.set_communicator_key(GroupStep{step_id, steps_.incarnation}.ToString());
  for (const Waiting& member : *members) *member.response = answer;
}

void GroupLeader::TakeBack(int32_t key, const DeviceAttributes& device) {
  std::vector<Waiting> over;
  {
    MutexLock lock(mu_);
    const auto group = groups_.find(key);
    if (group == groups_.end()) return;
    const auto member = group->second.members.find(device.name());
    if (member == group->second.members.end() ||
        member->second.device.physical_device_desc() != device.physical_device_desc()) {
      return;
    }
    over.push_back(std::move(member->second));
    group->second.members.erase(member);
    if (group->second.members.empty()) groups_.erase(group);
  }
  for (const Waiting& waiting : over) {
    End(waiting, Cancelled(device.name(), " has left group ", key));
  }
}

void GroupLeader::Refuse(const CompleteGroupRequest& request, const Done& done) {
  const int32_t key = request.group_key();
  const Status why = FailedPrecondition(
      request.device_attributes().name(), " is one of TensorFlow's, and the leader of group ", key,
      " is one of Tenon's: collectives are between tasks of the same kind");
  std::vector<Waiting> over;
  {
    MutexLock lock(mu_);
    std::erase_if(refused_, [now = clock_.Now()](const auto& r) { return r.second.until < now; });
    refused_[key] = {clock_.Now() + kRefusal, why};
    const auto group = groups_.find(key);
    if (group != groups_.end()) {
      for (auto& [name, waiting] : group->second.members) over.push_back(std::move(waiting));
      groups_.erase(group);
    }
  }
  for (const Waiting& waiting : over) End(waiting, why);
  done(why);
}

void GroupLeader::GiveUp(int32_t group, const std::string& device, int64_t number,
                         const Status& why) {
  Done done;
  {
    MutexLock lock(mu_);
    const auto found = groups_.find(group);
    if (found == groups_.end()) return;
    const auto member = found->second.members.find(device);
    if (member == found->second.members.end() || member->second.number != number) return;
    done = std::move(member->second.done);
    found->second.members.erase(member);
    if (found->second.members.empty()) groups_.erase(found);
  }
  done(why);
}

}  // namespace tenon
