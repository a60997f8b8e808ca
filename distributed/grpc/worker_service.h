// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/impl/service_type.h>

#include <memory>

#include "distributed/worker_interface.h"

namespace tenon {

/// Serves `worker` as /tensorflow.WorkerService; it must outlive the service. The collective calls
/// (CompleteGroup and the like) are answered with UNIMPLEMENTED.
std::unique_ptr<grpc::Service> MakeWorkerService(WorkerInterface& worker);

}  // namespace tenon
