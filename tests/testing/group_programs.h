// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/tensor/tensor.h"

namespace tenon::testing {

/// What the devices of a group do together: a part on each of them, and what these give.
struct GroupProgram {
  std::string name;
  /// Builds the part of member `i` of `size`, on its device.
  std::function<Output(int i, int size)> build;
  /// What it gives.
  std::function<Tensor(int i, int size)> wanted;
};

/// Programs with all ops of groups. Those of ranks are for members of one task, where they deal.
std::vector<GroupProgram> GroupPrograms(bool between_tasks);

}  // namespace tenon::testing
