// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "distributed/grpc/rpc/blocking_calls.h"
#include "distributed/grpc/rpc/rpc_server.h"
#include "distributed/master/master.h"

namespace tenon {

/// Serves `master` as tensorflow.MasterService; both must outlive the server. Steps of one session
/// run at once, and start where the poller waits.
void ServeMaster(RpcServer& server, Master& master, BlockingCalls& calls);

/// How RunStep is answered, whatever it comes by: starts the step, and `done` is called with how
/// the call has ended. The request is not needed after the return; the rest lives until `done`.
using StepRunner =
    std::function<void(const RunStepRequest& request, RunStepResponse* response,
                       Cancellation* cancellation, const std::function<void(Status)>& done)>;
StepRunner MakeStepRunner(Master& master, BlockingCalls& calls);

}  // namespace tenon
