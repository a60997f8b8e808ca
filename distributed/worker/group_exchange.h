// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/tensor/tensor.h"
#include "distributed/worker/run_table.h"
#include "runtime/collectives/group_parts.h"
#include "runtime/device/thread_pool.h"

namespace tenon {

/// The tasks of a group, as one of them sees it, and the step in which they take tensors from each
/// other.
struct GroupTasks {
  struct Task {
    std::string name;    // "/job:J/replica:R/task:T"
    std::string device;  // that of its first member
    uint64_t incarnation = 0;
  };
  std::vector<Task> tasks;
  int own = 0;
  GroupLayout layout;
  int64_t step_id = 0;
  std::shared_ptr<TaskRun> step;
  ThreadPool* pool = nullptr;
  Clock* clock = nullptr;
};

/// The error of a task that gets `why` from another one of its group.
Status HasLeft(const std::string& task, int32_t group, const Status& why);
/// The key of what `from` has for `to`, both tasks' numbers.
std::string GroupKey(const GroupTasks& tasks, int from, int to, std::string name);

/// The work of a group's tasks for one instance: every task reduces or joins what its own
/// members have, takes what it needs from each of the others, and gives its members the result.
/// Sums are in the order of the tasks, so that all get the same bits. A large sum is made in
/// shares, one of each task.
class GroupExchange final : public std::enable_shared_from_this<GroupExchange> {
 public:
  /// Called once, when it fails, after the parts have been told.
  using Failed = std::function<void(const Status& why)>;

  /// `parts` are those of all members in this task; `use` counts how often the instance was used
  /// before. The pool and the clock outlive it.
  GroupExchange(std::shared_ptr<const GroupTasks> tasks, int64_t use, WaitingParts parts,
                Failed failed);

  /// Once. The exchange keeps itself until it is over.
  void Begin();
  /// Ends it with an error, unless it has ended.
  void Fail(const Status& why);

 private:
  using Tensors = std::vector<Tensor>;  // one for each task; none where it is not valid
  using Next = std::function<void(Tensors received)>;
  using Tasks = std::vector<int>;

  void AllReduce();
  void AllGather();
  void AllToAll();
  void Broadcast(const Tensors& notes);

  /// Leaves `sent` for the other tasks, takes what `from` have for this one, and calls `next` on a
  /// thread of the pool with it.
  void Exchange(const std::string& what, const Tensors& sent, const Tasks& from, Next next);
  /// The name of what is left for other tasks, or taken from them.
  std::string NameOf(const std::string& what) const;
  /// That this task does what the ones do whose notes these are.
  Status CheckNotes(const Tensors& notes) const;
  /// Calls `finish` with the parts, once the tasks are known to do the same.
  void FinishWith(std::function<void(WaitingParts parts)> finish);
  void HandleLimit();

  int size() const { return static_cast<int>(tasks_->tasks.size()); }
  const GroupPart& first() const { return first_; }
  Tasks Others() const;
  /// The same tensor for all other tasks.
  Tensors ForOthers(const Tensor& tensor) const;
  /// The elements of a share of the group's data that a task makes, [begin, end).
  std::pair<int64_t, int64_t> ShareOf(int task) const;
  /// The shares of all tasks as one tensor of the parts' shape.
  StatusOr<Tensor> Assemble(const Tensors& shares) const;

  const std::shared_ptr<const GroupTasks> tasks_;
  const std::string name_;       // names this use of the instance in keys
  const std::string data_name_;  // the same, and what is done
  const GroupPart first_;
  const Failed failed_;
  Mutex mu_;
  Clock::Timer timer_ ABSL_GUARDED_BY(mu_) = 0;
  WaitingParts parts_ ABSL_GUARDED_BY(mu_);  // until they have been told
  bool over_ ABSL_GUARDED_BY(mu_) = false;
  bool agreed_ ABSL_GUARDED_BY(mu_) = false;
  std::function<void(WaitingParts parts)> finish_ ABSL_GUARDED_BY(mu_);
  std::vector<int> awaited_ ABSL_GUARDED_BY(mu_);  // how many tensors, of each task
};

}  // namespace tenon
