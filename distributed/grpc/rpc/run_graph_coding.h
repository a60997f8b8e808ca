// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "distributed/protocol/worker_interface.h"

// RunGraph's messages (worker.proto) and the call they stand for, at both ends.

namespace tenon {

/// At the caller.
Status WriteRunGraphRequest(const RunGraphCall& call, RunGraphRequest* request);
/// At the caller. The result is the step's own error, or Internal when a wanted tensor is missing.
Status ReadRunGraphResponse(const RunGraphResponse& response, RunGraphCall* call);

/// At the worker, whose devices `memory` is for. InvalidArgument names a fed value that cannot be
/// read.
Status ReadRunGraphRequest(const RunGraphRequest& request, const ArrivalMemory& memory,
                           RunGraphCall* call);
/// At the worker, when the step has ended with `status`: what it gives, its statistics and, with
/// `error_in_body`, its error. The result is what the call itself ends with.
Status WriteRunGraphResponse(Status status, bool error_in_body, RunGraphCall* call,
                             RunGraphResponse* response);

}  // namespace tenon
