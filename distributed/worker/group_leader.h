// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/entropy.h"
#include "core/base/mutex.h"
#include "distributed/protocol/worker_interface.h"

namespace tenon {

/// The mark of our tasks in CompleteGroup, which TensorFlow's do not have: the beginning of a
/// request's physical_device_desc, which a number follows that tells one call from another, and of
/// an answer's communicator_key.
inline constexpr char kGroupMark[] = "tenon:";

/// The answer's communicator_key.
struct GroupStep {
  int64_t step_id = 0;
  uint64_t leader_incarnation = 0;  // that of the leader's first CPU

  std::string ToString() const;
  /// Nothing for a text of TensorFlow's.
  static std::optional<GroupStep> Parse(std::string_view text);
};

/// The physical_device_desc of a request for kLeavesGroup members: why a step of its task has ended
/// before a part of it in the group could begin.
struct GroupLeaving {
  Status why;

  std::string ToString() const;
  static std::optional<GroupLeaving> Parse(std::string_view text);
};
inline constexpr int32_t kLeavesGroup = -1;

/// The task that leads the groups of a cluster: the first chief, master or worker, or else the
/// first task.
std::string GroupLeaderOf(const ClusterSpec& cluster);

/// Where the members of groups find each other (CompleteGroup of WorkerService). Each member asks,
/// and all get the same answer when the last one has. Whoever asks once more has left the group
/// that was made: its step ends, and it is made anew. A task whose step ends before it could ask
/// says so, and those that wait for it, or come soon, get the reason once. Thread-safe.
class GroupLeader {
 public:
  using Done = WorkerInterface::Done;

  /// The steps of groups in the leader's task.
  struct Steps {
    uint64_t incarnation = 0;
    std::function<void(int64_t step_id)> begin;
    std::function<void(int64_t step_id, const Status& why)> end;
  };
  /// The number of groups that are kept at most; the oldest ones end.
  static constexpr size_t kMaxGroups = 4096;

  /// All outlive it.
  GroupLeader(Entropy& entropy, Clock& clock, Steps steps)
      : entropy_(entropy), clock_(clock), steps_(std::move(steps)) {}
  /// Whoever still waits gets Cancelled.
  ~GroupLeader();

  /// A request for 0 members takes back the one of the same number, unless the group is made; one
  /// for kLeavesGroup fails the others with the task's reason. A
  /// member that asks again, in a process that has started again perhaps, takes its own place: the
  /// call before fails with Aborted. InvalidArgument, to all that wait, when members differ in
  /// the group's size. FailedPrecondition for one of TensorFlow's, and for all that are in its
  /// group, or join it soon. `response` and `cancellation`, which may be null and ends the wait,
  /// live until `done`.
  void Complete(const CompleteGroupRequest& request, CompleteGroupResponse* response,
                Cancellation* cancellation, Done done);

 private:
  struct Waiting {
    DeviceAttributes device;
    CompleteGroupResponse* response;
    Cancellation* cancellation;
    Cancellation::Token token;
    Done done;
    int64_t number;
  };
  struct Group {
    int32_t size = 0;
    std::map<std::string, Waiting> members;  // by the device's name
  };

  /// Takes back a call that still waits, with its number.
  void TakeBack(int32_t key, const DeviceAttributes& device);
  void Refuse(const CompleteGroupRequest& request, const Done& done);
  /// A task's step has ended before its part.
  void Leave(int32_t key, const std::string& device, const GroupLeaving& leaving);
  /// Why a member of the task may not wait, as it takes its place.
  Status TakeRefusal(int32_t key, const std::string& task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Remembers a refusal, and gives those that wait for the group.
  std::vector<Waiting> AddRefusal(int32_t key, const std::string& task, const Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Knows the group from now on; `outlived` gets one that has to make room.
  void Keep(int32_t key, int64_t step_id, std::vector<std::pair<int32_t, int64_t>>* outlived)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Fills the responses of all members, and puts these in order.
  void Answer(const CompleteGroupRequest& request, int64_t step_id,
              std::vector<Waiting>* members) const;
  /// That the call with this number is given up.
  void GiveUp(int32_t group, const std::string& device, int64_t number, const Status& why);
  static void End(const Waiting& waiting, const Status& status);

  Entropy& entropy_;
  Clock& clock_;
  const Steps steps_;
  Mutex mu_;
  int64_t count_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<int32_t, Group> groups_ ABSL_GUARDED_BY(mu_);
  std::map<int32_t, int64_t> made_ ABSL_GUARDED_BY(mu_);  // the steps of groups
  std::deque<std::pair<int32_t, int64_t>> oldest_ ABSL_GUARDED_BY(mu_);
  struct Refusal {
    Clock::Time until;
    Status why;
    std::set<std::string> told;  // tasks that need not hear of it, or have
  };
  /// By group, and by the task that has left it; of no task where one of TensorFlow's has asked for
  /// the group.
  std::map<std::pair<int32_t, std::string>, Refusal> refusals_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
