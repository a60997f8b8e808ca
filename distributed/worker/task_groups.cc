// SPDX-License-Identifier: Apache-2.0
#include "distributed/worker/task_groups.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <set>
#include <utility>
#include <vector>

#include "core/base/strings.h"
#include "core/device/device_name.h"
#include "distributed/worker/group_exchange.h"
#include "runtime/collectives/group_meeting.h"
#include "runtime/collectives/local_groups.h"

namespace tenon {

namespace {

/// The number of failed groups whose steps are kept, and tell members that come late the reason.
constexpr size_t kKeptSteps = 16;

}  // namespace

/// The state that groups have in common. It outlives the TaskGroups as long as calls run.
struct TaskGroups::Shared {
  std::shared_ptr<const TaskPeers> peers;
  std::vector<Device*> devices;
  ThreadPool* pool = nullptr;
  Clock* clock = nullptr;
  Mutex mu;
  std::atomic<int64_t> joins{0};
  bool has_ended ABSL_GUARDED_BY(mu) = false;
  RunTable* steps ABSL_GUARDED_BY(mu) = nullptr;  // null when all groups have ended
  std::map<int32_t, std::shared_ptr<Group>> groups ABSL_GUARDED_BY(mu);
  std::deque<int64_t> failed_steps ABSL_GUARDED_BY(mu);

  StatusOr<std::shared_ptr<TaskRun>> Step(int64_t step_id) {
    MutexLock lock(mu);
    if (steps == nullptr) return Cancelled(peers->task, " ends");
    return steps->Run(step_id, kGroupSession, peers);
  }
  /// Ends the step, and keeps it for a while for those that come late.
  void EndStep(int64_t step_id, const Status& why) {
    const auto step = Step(step_id);
    if (step.ok()) (*step)->Abort(why);
    MutexLock lock(mu);
    if (steps == nullptr) return;
    failed_steps.push_back(step_id);
    if (failed_steps.size() <= kKeptSteps) return;
    steps->Remove(failed_steps.front());
    failed_steps.pop_front();
  }
};

class TaskGroups::Group final : public std::enable_shared_from_this<Group> {
 public:
  Group(std::shared_ptr<Shared> shared, int32_t key) : shared_(std::move(shared)), key_(key) {}

  /// Once, before the first part.
  void Open(int32_t size) {
    GroupMeeting::Events events;
    events.complete = [group = weak_from_this()](WaitingParts parts) {
      if (const auto alive = group.lock()) return alive->Complete(std::move(parts));
      FinishWithSame(parts, Cancelled("the group is no more"));
    };
    events.failed = [group = weak_from_this()](const Status& why) {
      if (const auto alive = group.lock()) alive->HandleFailure(why);
    };
    meeting_ = std::make_shared<GroupMeeting>(*shared_->clock, size, std::move(events));
  }

  bool is_idle() const { return meeting_->is_idle(); }
  int32_t size() const { return meeting_->size(); }
  void Fail(const Status& why) { meeting_->Fail(why); }
  bool HasUntaken() const {
    MutexLock lock(mu_);
    return tasks_ != nullptr && tasks_->step->HasUntaken();
  }

  void Start(GroupPart part, Communicator::Done done) {
    bool is_new = false;
    Status wrong;
    const std::string device = part.device;
    {
      MutexLock lock(mu_);
      is_new = devices_.insert(device).second;
      if (is_new && tasks_ != nullptr) wrong = NoMember(device);
    }
    meeting_->Start(std::move(part), std::move(done));
    if (!wrong.ok()) return Fail(wrong);
    if (is_new) Join(device);
  }

 private:
  struct JoinCall {
    CompleteGroupRequest request;
    CompleteGroupResponse response;
  };

  Status NoMember(const std::string& device) const {
    return InvalidArgument(device, " is none of the ", size(), " members that group ", key_,
                           " has had until now");
  }

  void Join(const std::string& device) {
    const auto leader = shared_->peers->workers->Get(shared_->peers->leader);
    if (!leader.ok()) return Fail(leader.status());
    const auto call = std::make_shared<JoinCall>();
    call->request.set_group_key(key_);
    call->request.set_group_size(size());
    DeviceAttributes* const attributes = call->request.mutable_device_attributes();
    for (Device* d : shared_->devices) {
      // A session may know the task by another name.
      if (DevicePartOf(d->name()) != DevicePartOf(device)) continue;
      attributes->set_device_type(std::string(d->kind().name()));
      attributes->set_incarnation(d->incarnation());
    }
    call->request.set_device_type(attributes->device_type());
    attributes->set_name(device);
    attributes->set_physical_device_desc(StrCat(kGroupMark, ++shared_->joins));
    {
      MutexLock lock(mu_);
      joins_.push_back(call->request);
    }
    (*leader)->CompleteGroupAsync(
        call->request, &call->response, nullptr,
        [group = shared_from_this(), worker = *leader, call](const Status& status) {
          if (!status.ok()) return group->Fail(status);
          // The group's first sum may follow, and this may be the thread that all connections wait
          // for.
          group->shared_->pool->Submit([group, call] {
            const Status made = group->SetMembers(call->response);
            if (!made.ok()) group->Fail(made);
          });
        });
  }

  /// Takes the leader's answer to one of this task's members; the first one makes the group.
  Status SetMembers(const CompleteGroupResponse& response) {
    const std::string& leader = shared_->peers->leader;
    const auto step = GroupStep::Parse(response.communicator_key());
    if (!step) {
      return FailedPrecondition(
          leader, ", which leads group ", key_, ", is one of TensorFlow's, and ",
          shared_->peers->task,
          " is one of Tenon's: collectives are between tasks of the same kind");
    }
    auto tasks = std::make_shared<GroupTasks>();
    tasks->step_id = step->step_id;
    tasks->own = -1;
    tasks->pool = shared_->pool;
    tasks->clock = shared_->clock;
    std::vector<std::string> members;
    std::set<std::string> seen;
    int place = 0;
    for (const DeviceAttributes& device : response.device_attributes()) {
      const std::string task(TaskPartOf(device.name()));
      if (tasks->tasks.empty() || tasks->tasks.back().name != task) {
        if (!seen.insert(task).second) {
          return Internal(leader, " says that ", task, " is in group ", key_, " twice");
        }
        if (task == shared_->peers->task) tasks->own = static_cast<int>(tasks->tasks.size());
        tasks->tasks.push_back({task, device.name(), device.incarnation()});
        place = 0;
      }
      tasks->layout.task_of.push_back(static_cast<int>(tasks->tasks.size()) - 1);
      tasks->layout.place_of.push_back(place++);
      if (task == shared_->peers->task) members.push_back(device.name());
    }
    if (tasks->own < 0 || response.device_attributes_size() != size()) {
      return Internal(leader, " says that group ", key_, " has ", response.device_attributes_size(),
                      " members, wanted ", size(), ", with some of ", shared_->peers->task);
    }
    TENON_ASSIGN_OR_RETURN(tasks->step, shared_->Step(step->step_id));
    Status failed;
    bool is_first = false;
    {
      MutexLock lock(mu_);
      failed = failed_;
      is_first = tasks_ == nullptr;
      if (is_first && failed.ok()) {
        tasks_ = tasks;
        members_ = std::set<std::string>(members.begin(), members.end());
        for (const std::string& device : devices_) {
          if (!members_.contains(device)) failed = NoMember(device);
        }
      }
    }
    if (!failed.ok()) {
      // The others have this task in their group, and would wait.
      shared_->EndStep(step->step_id, failed);
      return failed;
    }
    if (!is_first) return OkStatus();
    Watch(step->leader_incarnation);
    meeting_->Expect(static_cast<int32_t>(members.size()));
    return OkStatus();
  }

  /// Fails the group when another of its tasks does, or dies, and when the leader makes it anew: a
  /// receive of what is never sent ends by that alone.
  void Watch(uint64_t leader_incarnation) {
    std::shared_ptr<const GroupTasks> tasks;
    {
      MutexLock lock(mu_);
      tasks = tasks_;
    }
    const auto watch = [&](const std::string& key, const std::string& task) {
      tasks->step->RecvAsync(
          key, [group = weak_from_this(), task](const Status& status, const Tensor&, bool) {
            const auto alive = group.lock();
            if (alive != nullptr && !status.ok()) alive->Fail(HasLeft(task, alive->key_, status));
          });
    };
    for (int task = 0; task < static_cast<int>(tasks->tasks.size()); ++task) {
      if (task == tasks->own) continue;
      watch(GroupKey(*tasks, task, tasks->own, StrCat("the_end_of_group_", key_)),
            tasks->tasks[task].name);
    }
    RendezvousKey key;
    key.src_device = StrCat(shared_->peers->leader, "/device:CPU:0");
    key.src_incarnation = leader_incarnation;
    key.dst_device = tasks->tasks[tasks->own].device;
    key.tensor_name = StrCat("the_leader_of_group_", key_);
    watch(key.ToString(), shared_->peers->leader);
  }

  void Complete(WaitingParts parts) {
    std::shared_ptr<const GroupTasks> tasks;
    int64_t use = 0;
    Status wrong;
    const GroupPart& first = parts[0].part;
    {
      MutexLock lock(mu_);
      tasks = tasks_;
      use = uses_[first.instance]++;
      for (const auto& [part, done] : parts) {
        if (!members_.contains(part.device)) wrong = NoMember(part.device);
      }
    }
    const bool is_alone = tasks->tasks.size() == 1;
    if (wrong.ok() && !is_alone && first.rank >= 0 &&
        first.what.kind == Collective::Kind::kAllToAll) {
      wrong = Unimplemented("'", first.what.name,
                            "' deals rows by ranks between tasks: wanted "
                            "CollectiveAllToAllV2, where members are in the order of devices");
    }
    if (!wrong.ok()) {
      FinishWithSame(parts, wrong);
      return Fail(wrong);
    }
    if (is_alone) return FinishAlone(std::move(parts));
    const auto exchange = std::make_shared<GroupExchange>(
        std::move(tasks), use, std::move(parts),
        [group = shared_from_this()](const Status& why) { group->Fail(why); });
    Status failed;
    {
      MutexLock lock(mu_);
      std::erase_if(exchanges_, [](const auto& known) { return known.expired(); });
      exchanges_.push_back(exchange);
      failed = failed_;
    }
    if (!failed.ok()) return exchange->Fail(failed);
    exchange->Begin();
  }

  void HandleFailure(const Status& why) {
    std::vector<std::weak_ptr<GroupExchange>> exchanges;
    std::vector<CompleteGroupRequest> joins;
    std::shared_ptr<const GroupTasks> tasks;
    {
      MutexLock shared_lock(shared_->mu);
      const auto known = shared_->groups.find(key_);
      if (known != shared_->groups.end() && known->second.get() == this) {
        shared_->groups.erase(known);  // the caller keeps this one
      }
      MutexLock lock(mu_);
      failed_ = why;
      exchanges.swap(exchanges_);
      joins.swap(joins_);
      tasks = tasks_;
    }
    for (const auto& exchange : exchanges) {
      if (const auto alive = exchange.lock()) alive->Fail(why);
    }
    if (tasks != nullptr) {
      // The other tasks get the reason, now or when they come.
      return shared_->EndStep(tasks->step_id, why);
    }
    for (CompleteGroupRequest& join : joins) TakeBack(join);
  }

  /// Where the group has been made meanwhile, the answer to the call before comes still.
  void TakeBack(const CompleteGroupRequest& join) {
    const auto leader = shared_->peers->workers->Get(shared_->peers->leader);
    if (!leader.ok()) return;
    const auto call = std::make_shared<JoinCall>();
    call->request = join;
    call->request.set_group_size(0);
    (*leader)->CompleteGroupAsync(call->request, &call->response, nullptr,
                                  [worker = *leader, call](const Status&) {});
  }

  const std::shared_ptr<Shared> shared_;
  const int32_t key_;
  std::shared_ptr<GroupMeeting> meeting_;
  mutable Mutex mu_;
  Status failed_ ABSL_GUARDED_BY(mu_);
  std::vector<CompleteGroupRequest> joins_ ABSL_GUARDED_BY(mu_);  // what the leader was asked
  std::set<std::string> devices_ ABSL_GUARDED_BY(mu_);            // of this task that have joined
  std::set<std::string> members_ ABSL_GUARDED_BY(mu_);  // of this task, as the leader says
  std::shared_ptr<const GroupTasks> tasks_ ABSL_GUARDED_BY(mu_);  // null until the leader answers
  std::map<int32_t, int64_t> uses_ ABSL_GUARDED_BY(mu_);          // of instances
  std::vector<std::weak_ptr<GroupExchange>> exchanges_ ABSL_GUARDED_BY(mu_);
};

TaskGroups::TaskGroups(std::shared_ptr<const TaskPeers> peers, const std::vector<Device*>& devices,
                       RunTable& steps, ThreadPool& pool, Clock& clock)
    : shared_(std::make_shared<Shared>()) {
  shared_->peers = std::move(peers);
  shared_->devices = devices;
  shared_->pool = &pool;
  shared_->clock = &clock;
  MutexLock lock(shared_->mu);
  shared_->steps = &steps;
}

TaskGroups::~TaskGroups() { End(Cancelled("the session of the group has ended")); }

void TaskGroups::Start(GroupPart part, Communicator::Done done) {
  std::shared_ptr<Group> group, outlived;
  const int32_t key = part.group, size = part.size;
  const std::string device = part.device;
  {
    MutexLock lock(shared_->mu);
    if (!shared_->has_ended) {
      std::shared_ptr<Group>& known = shared_->groups[key];
      if (known != nullptr && known->size() != size && known->is_idle()) {
        outlived = std::move(known);  // another program's, which used the same number
      }
      if (known == nullptr) {
        known = std::make_shared<Group>(shared_, key);
        known->Open(size);
      }
      group = known;
    }
  }
  if (group == nullptr) return done(Cancelled(shared_->peers->task, " ends"));
  if (outlived != nullptr) {
    outlived->Fail(InvalidArgument(device, " joins group ", key, " as one of ", size,
                                   " members, and it had ", outlived->size()));
  }
  group->Start(std::move(part), std::move(done));
}

void TaskGroups::Abort(int32_t group, const Status& why) {
  std::shared_ptr<Group> found;
  {
    MutexLock lock(shared_->mu);
    const auto known = shared_->groups.find(group);
    if (known == shared_->groups.end()) return;
    found = known->second;
  }
  found->Fail(why);
}

GroupLeader::Steps TaskGroups::LeaderSteps() const {
  return {
      shared_->devices[0]->incarnation(),
      // Where the server ends, the members hear of that.
      [shared = shared_](int64_t step_id) { (void)shared->Step(step_id); },
      [shared = shared_](int64_t step_id, const Status& why) { shared->EndStep(step_id, why); }};
}

bool TaskGroups::HasUntaken() const {
  std::vector<std::shared_ptr<Group>> groups;
  {
    MutexLock lock(shared_->mu);
    for (const auto& [key, group] : shared_->groups) groups.push_back(group);
  }
  return std::any_of(groups.begin(), groups.end(),
                     [](const auto& group) { return group->HasUntaken(); });
}

void TaskGroups::End(const Status& why) {
  std::map<int32_t, std::shared_ptr<Group>> groups;
  {
    MutexLock lock(shared_->mu);
    shared_->has_ended = true;
    groups.swap(shared_->groups);
  }
  for (const auto& [key, group] : groups) group->Fail(why);
  MutexLock lock(shared_->mu);
  if (shared_->steps == nullptr) return;
  for (const int64_t step_id : shared_->failed_steps) shared_->steps->Remove(step_id);
  shared_->failed_steps.clear();
  shared_->steps = nullptr;
}

}  // namespace tenon
