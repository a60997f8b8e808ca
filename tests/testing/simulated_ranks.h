// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "runtime/collectives/collective_backend.h"

namespace tenon::testing {

using JoinFunction =
    std::function<StatusOr<std::unique_ptr<CollectiveBackend>>(const RankOptions& options)>;

/// Joins ranks by options.device, a StreamDevice of a SimulatedDriver: what `join` joins does the
/// work, on the device's memory and among its kernels, so that whatever has not been waited for is
/// found out.
StatusOr<std::unique_ptr<CollectiveBackend>> JoinBySimulatedDevice(const RankOptions& options,
                                                                   const JoinFunction& join);

}  // namespace tenon::testing
