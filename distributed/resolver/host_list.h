// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

// How Slurm writes the nodes of a job and how many tasks each has.

namespace tenon {

/// The hosts of a list such as "login,node[01-03,7]-ib,rack[1-2]n[1-4]": what stands in brackets
/// keeps its leading zeros, and several brackets give all combinations, the last one fastest.
/// InvalidArgument for a list that cannot be read, or one of more than 65,536 hosts.
StatusOr<std::vector<std::string>> ExpandHostList(std::string_view list);

/// The counts of a list such as "2(x3),1", which is {2, 2, 2, 1}. InvalidArgument as above.
StatusOr<std::vector<int>> ExpandCounts(std::string_view list);

}  // namespace tenon
