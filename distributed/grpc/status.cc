// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/status.h"

namespace tenon {

grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  constexpr size_t kMaxMessage = 3072;
  std::string message(Message(status));
  if (message.size() > kMaxMessage) {
    message.resize(kMaxMessage);
    message += " ... [truncated]";
  }
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message);
}

Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return OkStatus();
  return Status(static_cast<StatusCode>(status.error_code()), status.error_message());
}

}  // namespace tenon
