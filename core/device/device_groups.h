// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "core/base/cancellation.h"
#include "core/device/communicator.h"

namespace tenon {

/// One device's part in what the devices of a group do together, as TensorFlow's collective ops
/// have it: a group is known by a number and has so many members, and the parts that belong
/// together by the number of an instance, which may be used again when all have come.
struct GroupPart {
  int32_t group = 0, size = 1, instance = 0;
  std::string device;  // the member's full name
  int32_t rank = -1;   // its number among the members; -1: by the order of their names
  /// kAllReduce and kAllGather have the same shape everywhere, kAllToAll deals equal shares of the
  /// rows; data of kBroadcast are memory of the shape that is expected, but for the source's.
  Collective what;
  bool is_source = false;  // of kBroadcast, instead of what.root
  bool divides = false;    // the result of kAllReduce by `size`; integers are cut off
  bool scatters = false;   // each member gets its share of the rows of kAllReduce's result
  /// A part of a run that has been cancelled does not begin; null: of none.
  const Cancellation* cancellation = nullptr;
  /// How long the others are waited for.
  std::chrono::milliseconds limit{std::chrono::minutes(5)};
};

/// Where the devices of a run find each other. Members are in the order of their ranks, or
/// names, of which devices with the greater number come later. Thread-safe.
class DeviceGroups {
 public:
  virtual ~DeviceGroups() = default;
  /// `done` is called once, perhaps at once or from another thread, when this part has its result.
  /// InvalidArgument for parts that do not fit each other, on all members; DeadlineExceeded names
  /// those that have come. After a failure every other part of the group fails, too.
  virtual void Start(GroupPart part, Communicator::Done done) = 0;
  /// Fails what waits in this group.
  virtual void Abort(int32_t group, const Status& why) = 0;
};

}  // namespace tenon
