// SPDX-License-Identifier: Apache-2.0
#include "distributed/protocol/proto_io_cluster.h"

namespace tenon {

StatusOr<ClusterSpec> ClusterFromProto(const ClusterDef& proto) {
  ClusterSpec cluster;
  for (const JobDef& job : proto.job()) {
    for (const auto& [task, address] : job.tasks()) {
      TENON_RETURN_IF_ERROR(cluster.AddTask(job.name(), task, address));
    }
  }
  return cluster;
}

ClusterDef ClusterToProto(const ClusterSpec& cluster) {
  ClusterDef proto;
  for (const auto& [name, tasks] : cluster.jobs()) {
    JobDef* const job = proto.add_job();
    job->set_name(name);
    job->mutable_tasks()->insert(tasks.begin(), tasks.end());
  }
  return proto;
}

}  // namespace tenon
