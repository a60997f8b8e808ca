// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/worker_service.h"

#include <random>

#include "core/base/exceptions.h"
#include "distributed/grpc/rpc/run_graph_coding.h"
#include "distributed/grpc/rpc/tensor_coding.h"

namespace tenon {
namespace {

const std::string kWorkerService = "/tensorflow.WorkerService/";

using Done = WorkerInterface::Done;

/// A call that goes to the worker as it is.
template <typename Request, typename Response>
void Forward(RpcServer& server, WorkerInterface& worker, const std::string& method,
             void (WorkerInterface::*call)(const Request&, Response*, Done)) {
  server.Handle<Request, Response>(
      kWorkerService + method,
      [&worker, call](const Request& request, Response* response, Cancellation*, Done done) {
        (worker.*call)(request, response, std::move(done));
      });
}

void RecvTensor(WorkerInterface& worker, const std::shared_ptr<ServedRpc>& rpc) {
  RecvTensorRequest request;
  if (!ReadMessage(&rpc->request(), &request)) {
    return rpc->End(InvalidArgument("the RecvTensorRequest cannot be read"));
  }
  auto call = std::make_shared<RecvTensorCall>();
  call->step_id = request.step_id();
  call->key = std::move(*request.mutable_rendezvous_key());
  call->request_id = request.request_id();
  worker.RecvTensorAsync(call.get(), &rpc->cancellation(), [rpc, call](const Status& status) {
    if (!status.ok()) return rpc->End(status);
    const Status encoded = CatchExceptions([&] {
      TENON_ASSIGN_OR_RETURN(const EncodedTensor tensor, EncodeTensor(call->tensor, call->is_dead));
      rpc->EndWith(ToByteBuffer(tensor));
      return OkStatus();
    });
    if (!encoded.ok()) rpc->End(encoded);
  });
}

}  // namespace

void ServeWorker(RpcServer& server, WorkerInterface& worker, ThreadPool& pool, Entropy& entropy) {
  using W = WorkerInterface;
  Forward(server, worker, "GetStatus", &W::GetStatusAsync);
  Forward(server, worker, "CreateWorkerSession", &W::CreateWorkerSessionAsync);
  Forward(server, worker, "DeleteWorkerSession", &W::DeleteWorkerSessionAsync);
  Forward(server, worker, "DeregisterGraph", &W::DeregisterGraphAsync);
  Forward(server, worker, "CleanupGraph", &W::CleanupGraphAsync);
  Forward(server, worker, "CleanupAll", &W::CleanupAllAsync);
  Forward(server, worker, "Logging", &W::LoggingAsync);
  server.Handle<RegisterGraphRequest, RegisterGraphResponse>(
      kWorkerService + "RegisterGraph",
      [&](const RegisterGraphRequest& request, RegisterGraphResponse* response, Cancellation*,
          Done done) {
        pool.Submit([&worker, &request, response, done] {
          const Status s = CatchExceptions([&] {
            worker.RegisterGraphAsync(request, response, done);
            return OkStatus();
          });
          if (!s.ok()) done(s);
        });
      });
  server.Handle<RunGraphRequest, RunGraphResponse>(
      kWorkerService + "RunGraph", [&](const RunGraphRequest& request, RunGraphResponse* response,
                                       Cancellation* cancellation, Done done) {
        auto call = std::make_shared<RunGraphCall>();
        const Status read = ReadRunGraphRequest(request, worker.arrival_memory(), call.get());
        if (!read.ok()) return done(read);
        const bool in_body = request.store_errors_in_response_body();
        worker.RunGraphAsync(call.get(), cancellation, [=](Status s) {
          done(CatchExceptions(
              [&] { return WriteRunGraphResponse(std::move(s), in_body, call.get(), response); }));
        });
      });
  server.HandleRaw(kWorkerService + "RecvTensor",
                   [&worker](const std::shared_ptr<ServedRpc>& rpc) { RecvTensor(worker, rpc); });
  // Answers are never kept for a receiver to say that it has them.
  server.Handle<MarkRecvFinishedRequest, MarkRecvFinishedResponse>(
      kWorkerService + "MarkRecvFinished",
      [](const auto&, auto*, auto*, const Done& done) { done(OkStatus()); });
  // One number for each graph of collectives, as long as the server lives.
  server.Handle<GetStepSequenceRequest, GetStepSequenceResponse>(
      kWorkerService + "GetStepSequence",
      [seed = static_cast<unsigned>(entropy.Next())](const GetStepSequenceRequest& request,
                                                     GetStepSequenceResponse* response,
                                                     Cancellation*, const Done& done) {
        for (const int64_t key : request.graph_key()) {
          StepSequence* const sequence = response->add_step_sequence();
          sequence->set_graph_key(key);
          std::seed_seq both{seed, static_cast<unsigned>(key), static_cast<unsigned>(key >> 32)};
          sequence->set_next_step_id(
              static_cast<int64_t>(std::mt19937_64(both)() & ((uint64_t{1} << 56) - 1)));
        }
        done(OkStatus());
      });
  server.Handle<CompleteGroupRequest, CompleteGroupResponse>(
      kWorkerService + "CompleteGroup",
      [&](const CompleteGroupRequest& request, CompleteGroupResponse* response,
          Cancellation* cancellation, Done done) {
        worker.CompleteGroupAsync(request, response, cancellation, std::move(done));
      });
  for (const char* method : {"RecvBuf", "CompleteInstance"}) {
    server.HandleRaw(kWorkerService + method, [method](const std::shared_ptr<ServedRpc>& rpc) {
      rpc->End(Unimplemented(method,
                             " is for TensorFlow's tasks, and this is one of Tenon's: "
                             "collectives are between tasks of the same kind"));
    });
  }
  server.HandleRaw(kWorkerService + "Tracing", [](const std::shared_ptr<ServedRpc>& rpc) {
    rpc->End(Unimplemented("Tracing: profiles are not served"));
  });
}

}  // namespace tenon
