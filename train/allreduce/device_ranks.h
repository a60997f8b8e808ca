// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "runtime/collectives/collective_backend.h"

namespace tenon {

/// How a rank wants collectives of what is in its device's memory.
enum class DeviceWish : uint8_t {
  kNone,    ///< By way of the host's memory, though there is a device.
  kIfAble,  ///< By the devices' library where all ranks can.
  kNeeded,  ///< By that only: else no rank joins.
};

/// The library for the memory of the ranks' devices; null where one rank has no device or cannot
/// join by it, or does not want to. `host` is the library by which they have joined. Blocks until
/// all ranks have called it. Where devices stay unused that are there, `notice` of the first rank
/// is told why; it may be null. FailedPrecondition on all ranks where one needs what cannot be.
StatusOr<std::unique_ptr<CollectiveBackend>> JoinByDevices(
    CollectiveBackend& host, const RankOptions& own, DeviceWish wish,
    const std::function<void(const std::string& line)>& notice);

}  // namespace tenon
