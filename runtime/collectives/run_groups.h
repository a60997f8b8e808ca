// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "core/base/mutex.h"
#include "core/device/device_groups.h"
#include "core/graph/graph.h"

namespace tenon {

/// How many parts a graph has in each group.
using GroupCounts = std::map<int32_t, int>;

/// The parts of the groups whose numbers are attributes or constants of the graph, of whatever
/// version of TensorFlow's ops.
GroupCounts CountGroupParts(const Graph& graph);

/// The groups of one run of a graph. They know which parts have not begun when it fails, for which
/// the others of the group would wait in vain. Thread-safe.
class RunGroups final : public DeviceGroups {
 public:
  /// `parts` are those of the graph.
  RunGroups(std::shared_ptr<DeviceGroups> groups, GroupCounts parts)
      : groups_(std::move(groups)), parts_(std::move(parts)) {}

  void Start(GroupPart part, Communicator::Done done) override;
  void Abort(int32_t group, const Status& why) override { groups_->Abort(group, why); }

  /// The run has failed: fails the groups in which a part of the graph has not begun, or in which a
  /// loop may have had more to do.
  void HandleFailure(const Status& why);

 private:
  const std::shared_ptr<DeviceGroups> groups_;
  const GroupCounts parts_;
  Mutex mu_;
  GroupCounts begun_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
