// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace tenon {

/// The tasks of a cluster: jobs by name, each with tasks by number (not necessarily all from 0) and
/// the address "host:port" of each. A value type.
class ClusterSpec {
 public:
  using Tasks = std::map<int, std::string>;

  ClusterSpec() = default;

  /// "ps=host:1,host:2;worker=host:3": jobs separated by semicolons, addresses in task order by
  /// commas. An address may carry its task number, for jobs that lack some: "worker=[4]host:5".
  static StatusOr<ClusterSpec> Parse(std::string_view text);

  /// InvalidArgument for an illegal job name, a negative task, an address that is not host:port, or
  /// a task or address that is there already.
  Status AddTask(const std::string& job, int task, const std::string& address);
  /// A dense job: `addresses` separated by commas, tasks from 0.
  Status AddJob(const std::string& job, std::string_view addresses);

  bool empty() const { return jobs_.empty(); }
  const std::map<std::string, Tasks>& jobs() const { return jobs_; }
  bool HasTask(const std::string& job, int task) const;
  /// NotFound names the task and those the job has.
  StatusOr<std::string> Address(const std::string& job, int task) const;
  /// "/job:ps/replica:0/task:0" of every task, in order.
  std::vector<std::string> TaskNames() const;
  /// Number of tasks of `job`; 0 when there is no such job.
  int NumTasks(const std::string& job) const;
  /// In the form that Parse reads.
  std::string ToString() const;

  friend bool operator==(const ClusterSpec&, const ClusterSpec&) = default;

 private:
  std::map<std::string, Tasks> jobs_;
};

/// "/job:J/replica:0/task:T".
std::string TaskName(std::string_view job, int task);

/// The host:port of a target, "grpc://host:port"; InvalidArgument of anything else.
StatusOr<std::string> AddressOfTarget(const std::string& target);

}  // namespace tenon
