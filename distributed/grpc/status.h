// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/status.h>

#include "core/status.h"

namespace tenon {

/// The two number their codes alike. A message is cut at 3,072 bytes, as TensorFlow's servers do:
/// it travels in a header.
grpc::Status ToGrpc(const Status& status);
Status FromGrpc(const grpc::Status& status);

}  // namespace tenon
