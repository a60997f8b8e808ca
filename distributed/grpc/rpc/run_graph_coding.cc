// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/rpc/run_graph_coding.h"

#include "core/base/hash_map.h"
#include "core/proto/proto_io_tensor.h"
#include "distributed/grpc/rpc/status.h"
#include "distributed/grpc/rpc/tensor_coding.h"
#include "distributed/protocol/run_settings.h"

namespace tenon {

Status WriteRunGraphRequest(const RunGraphCall& call, RunGraphRequest* request) {
  request->set_session_handle(call.session_handle);
  request->set_create_worker_session_called(true);
  request->set_graph_handle(call.graph_handle);
  request->set_step_id(call.step_id);
  request->set_store_errors_in_response_body(true);
  WriteRunSettings(call.settings, request->mutable_exec_opts());
  request->set_is_partial(call.is_partial);
  request->set_is_last_partial_run(call.is_last_partial_run);
  size_t num_bytes = 0;
  for (const auto& [key, tensor] : call.send) num_bytes += tensor.num_bytes();
  TENON_RETURN_IF_ERROR(CheckFitsMessage(num_bytes));
  for (const auto& [key, tensor] : call.send) {
    NamedTensorProto* named = request->add_send();
    named->set_name(key);
    TENON_RETURN_IF_ERROR(TensorToProto(tensor, named->mutable_tensor()));
  }
  for (const std::string& key : call.recv_keys) request->add_recv_key(key);
  return OkStatus();
}

Status ReadRunGraphResponse(const RunGraphResponse& response, RunGraphCall* call) {
  call->step_stats = response.step_stats();
  if (response.status_code() != 0) {
    return Status(static_cast<StatusCode>(response.status_code()), response.status_error_message());
  }
  StringViewMap<const TensorProto*> by_key;
  for (const NamedTensorProto& t : response.recv()) by_key[t.name()] = &t.tensor();
  for (const std::string& key : call->recv_keys) {
    const auto found = by_key.find(key);
    if (found == by_key.end()) return Internal("the worker's answer lacks '", key, "'");
    TENON_ASSIGN_OR_RETURN(Tensor tensor, TensorFromProto(*found->second));
    call->received.push_back(std::move(tensor));
  }
  return OkStatus();
}

Status ReadRunGraphRequest(const RunGraphRequest& request, const ArrivalMemory& memory,
                           RunGraphCall* call) {
  call->session_handle = request.session_handle();
  call->graph_handle = request.graph_handle();
  call->step_id = request.step_id();
  call->settings = RunSettingsFrom(request.exec_opts());
  call->is_partial = request.is_partial();
  call->is_last_partial_run = request.is_last_partial_run();
  call->request_id = request.request_id();
  call->recv_keys = {request.recv_key().begin(), request.recv_key().end()};
  int64_t fill_budget = kMaxFillBytes;  // of the whole request
  for (const NamedTensorProto& t : request.send()) {
    auto tensor = TensorFromProto(t.tensor(), &fill_budget, memory.For(t.name()));
    if (!tensor.ok()) return Annotate(tensor.status(), t.name());
    call->send.emplace_back(t.name(), *std::move(tensor));
  }
  return OkStatus();
}

Status WriteRunGraphResponse(Status status, bool error_in_body, RunGraphCall* call,
                             RunGraphResponse* response) {
  size_t num_bytes = 0;
  for (const Tensor& tensor : call->received) num_bytes += tensor.num_bytes();
  if (status.ok()) status = CheckFitsMessage(num_bytes);
  for (size_t i = 0; i < call->received.size() && status.ok(); ++i) {
    NamedTensorProto* named = response->add_recv();
    named->set_name(call->recv_keys[i]);
    status = TensorToProto(call->received[i], named->mutable_tensor());
  }
  if (call->settings.trace) *response->mutable_step_stats() = std::move(call->step_stats);
  if (status.ok()) status = CheckFitsMessage(response->ByteSizeLong());
  if (!status.ok()) response->clear_recv();
  if (status.ok() || !error_in_body) return status;
  response->set_status_code(static_cast<error::Code>(status.code()));
  response->set_status_error_message(WireMessage(status));
  return OkStatus();
}

}  // namespace tenon
