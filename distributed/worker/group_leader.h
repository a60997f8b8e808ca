// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
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

/// The task that leads the groups of a cluster: the first chief, master or worker, or else the
/// first task.
std::string GroupLeaderOf(const ClusterSpec& cluster);

/// Where the members of groups find each other (CompleteGroup of WorkerService). Each member asks,
/// and all get the same answer when the last one has. Whoever asks once more has left the group
/// that was made: its step ends, and it is made anew. Thread-safe.
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

  /// A request for 0 members takes back the one of the same number, unless the group is made. A
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
  /// Groups that one of TensorFlow's has asked for.
  struct Refusal {
    Clock::Time until;
    Status why;
  };
  std::map<int32_t, Refusal> refused_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
