// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "tools/launch/task_plan.h"

// Tasks on hosts that a user names: which one gets which.

namespace tenon::tools {

/// A host and how many tasks it takes.
struct HostSlots {
  std::string name;  // as ssh and the tasks are to call it; an IPv6 address in brackets
  int slots = 1;
};

/// The hosts of "h1:4,h2:4", where a host alone has one slot. A host that comes again has more
/// slots. Wrong usage, naming the entry, for what cannot be read.
StatusOr<std::vector<HostSlots>> ParseHosts(std::string_view text);

/// The hosts of a file, one a line: "h1 slots=4" as Open MPI has them, or "h1:4" as MPICH and
/// horovodrun. What follows a # is a comment. Wrong usage, naming file and line, for what cannot be
/// read; NotFound or Unavailable for a file that cannot.
StatusOr<std::vector<HostSlots>> ReadHostFile(const std::string& path);

/// How many tasks the hosts take together.
int NumSlots(const std::vector<HostSlots>& hosts);

/// A task for each parameter server and then for each worker, host after host, each filled to its
/// slots. A host's first task has the port `first_port`, others have those that follow; 0: a port
/// from 10000 to 31900, drawn. Wrong usage where there are fewer slots than tasks, and where a name
/// means each host itself.
StatusOr<std::vector<TaskPlan>> PlanTasksOnHosts(const ClusterShape& shape,
                                                 const std::vector<HostSlots>& hosts,
                                                 int first_port);

}  // namespace tenon::tools
