// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/impl/service_type.h>

#include <memory>

#include "distributed/grpc/blocking_calls.h"
#include "distributed/master.h"

namespace tenon {

/// Serves `master` as /tensorflow.MasterService; master and calls must outlive the service. Steps of
/// one session run at once. Partial runs and callables are answered with UNIMPLEMENTED.
std::unique_ptr<grpc::Service> MakeMasterService(Master& master, BlockingCalls& calls);

}  // namespace tenon
