// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/server_callback.h>

#include "core/cancellation.h"
#include "distributed/grpc/status.h"

namespace tenon {

/// One call at a server: what it works on, and a Cancellation that the caller's giving up triggers.
/// Deletes itself when gRPC is done with it.
template <typename State>
class CallReactor final : public grpc::ServerUnaryReactor {
 public:
  State state;
  Cancellation cancellation;

  void End(const Status& status) { Finish(ToGrpc(status)); }

 private:
  void OnCancel() override {
    cancellation.Cancel(Cancelled("the caller has cancelled the call or is gone"));
  }
  void OnDone() override { delete this; }
};

/// For calls without a state of their own.
struct NoState {};

}  // namespace tenon
