// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/master_service.h"

#include <optional>

#include "core/base/exceptions.h"
#include "core/proto/proto_io_tensor.h"
#include "distributed/grpc/rpc/status.h"
#include "distributed/grpc/rpc/tensor_coding.h"
#include "proto/master.pb.h"

namespace tenon {
namespace {

const std::string kMasterService = "/tensorflow.MasterService/";

/// More bytes of an answer are written by the pool: the poller has others to look after.
constexpr size_t kMostWrittenHere = 1 << 20;

using Done = std::function<void(Status)>;

Status ReadRequest(const RunStepRequest& request, ClientCall* call) {
  call->session_handle = request.session_handle();
  call->partial_run_handle = request.partial_run_handle();
  int64_t fill_budget = kMaxFillBytes;  // of the whole request
  for (const NamedTensorProto& feed : request.feed()) {
    auto tensor = TensorFromProto(feed.tensor(), &fill_budget);
    if (!tensor.ok()) return Annotate(tensor.status(), StrCat("feed '", feed.name(), "'"));
    call->feeds.emplace_back(feed.name(), *std::move(tensor));
  }
  call->fetches = {request.fetch().begin(), request.fetch().end()};
  call->targets = {request.target().begin(), request.target().end()};
  call->request_id = request.request_id();
  return call->SetOptions(request.options());
}

Status ReadRequest(Master& master, const RunCallableRequest& request, ClientCall* call) {
  TENON_RETURN_IF_ERROR(master.ReadCallable(request, call));
  int64_t fill_budget = kMaxFillBytes;
  for (int i = 0; i < request.feed_size(); ++i) {
    auto& [name, value] = call->feeds[i];
    auto tensor = TensorFromProto(request.feed(i), &fill_budget);
    if (!tensor.ok()) return Annotate(tensor.status(), StrCat("feed '", name, "'"));
    value = *std::move(tensor);
  }
  return OkStatus();
}

Status WriteResponse(ClientCall* call, RunCallableResponse* response) {
  size_t num_bytes = 0;
  for (const Tensor& tensor : call->fetched) num_bytes += tensor.num_bytes();
  TENON_RETURN_IF_ERROR(CheckFitsMessage(num_bytes));
  for (const Tensor& tensor : call->fetched) {
    TENON_RETURN_IF_ERROR(TensorToProto(tensor, response->add_fetch()));
  }
  return OkStatus();
}

Status WriteResponse(ClientCall* call, RunStepResponse* response) {
  size_t num_bytes = 0;
  for (const Tensor& tensor : call->fetched) num_bytes += tensor.num_bytes();
  TENON_RETURN_IF_ERROR(CheckFitsMessage(num_bytes));
  for (size_t i = 0; i < call->fetches.size(); ++i) {
    NamedTensorProto* named = response->add_tensor();
    named->set_name(call->fetches[i]);
    TENON_RETURN_IF_ERROR(TensorToProto(call->fetched[i], named->mutable_tensor()));
  }
  return OkStatus();
}

/// The status of a call whose answer has no place for errors. TensorFlow's client takes UNAVAILABLE
/// for a failure of its own connection and repeats the call ten times.
Status AnswerStatus(Status status) {
  if (status.code() != StatusCode::kUnavailable) return status;
  return Aborted(Message(status));
}

/// A call that may wait for other tasks.
template <typename Request, typename Response, typename Fn>
void Blocking(RpcServer& server, BlockingCalls& calls, const std::string& method, Fn fn) {
  server.Handle<Request, Response>(
      kMasterService + method, [&calls, fn](const Request& request, Response* response,
                                            Cancellation* cancellation, const Done& done) {
        const Status accepted = calls.Run([&request, response, cancellation, done, fn] {
          done(AnswerStatus(CatchExceptions([&] { return fn(request, response, cancellation); })));
        });
        if (!accepted.ok()) done(accepted);
      });
}

}  // namespace

StepRunner::~StepRunner() {
  MutexLock lock(mu_);
  while (!compiling_.empty()) none_left_.Wait(mu_);
}

void StepRunner::Compile(const ClientCall& call, Waiting waiting) {
  const std::string key = StrCat(call.session_handle, " ", call.signature().Key());
  bool is_first = false, too_many = false;
  {
    MutexLock lock(mu_);
    too_many = num_waiting_ >= most_waiting_;
    if (!too_many) {
      ++num_waiting_;
      const auto [found, is_new] = compiling_.try_emplace(key);
      is_first = is_new;
      found->second.push_back(waiting);
    }
  }
  if (too_many) {
    return waiting.end(ResourceExhausted("the server has ", most_waiting_,
                                         " steps on their way, as many as it may have"));
  }
  if (!is_first) return;
  auto alike = std::make_shared<ClientCall>(call);  // the call itself belongs to its step soon
  for (auto& [name, tensor] : alike->feeds) tensor = Tensor();
  const Status accepted = calls_.Run([this, key, alike] {
    while (const std::optional<Cancellation*> cancellation = FirstOf(key)) {
      const Status status = master_.Compile(*alike, *cancellation);
      if (status.ok() || *cancellation == nullptr || !(*cancellation)->cancelled()) {
        return EndWaiting(key, status);
      }
      TakeFirst(key).end(status);  // a caller that gives up does so for itself alone
    }
  });
  if (!accepted.ok()) EndWaiting(key, accepted);
}

std::optional<Cancellation*> StepRunner::FirstOf(const std::string& key) {
  MutexLock lock(mu_);
  const auto found = compiling_.find(key);
  if (!found->second.empty()) return found->second.front().cancellation;
  compiling_.erase(found);
  if (compiling_.empty()) none_left_.NotifyAll();
  return std::nullopt;
}

StepRunner::Waiting StepRunner::TakeFirst(const std::string& key) {
  MutexLock lock(mu_);
  auto& waiting = compiling_.find(key)->second;
  Waiting first = std::move(waiting.front());
  waiting.pop_front();
  --num_waiting_;
  return first;
}

void StepRunner::EndWaiting(const std::string& key, const Status& compiled) {
  std::deque<Waiting> waiting;
  {
    MutexLock lock(mu_);
    const auto found = compiling_.find(key);
    waiting = std::move(found->second);
    num_waiting_ -= static_cast<int64_t>(waiting.size());
    compiling_.erase(found);
    if (compiling_.empty()) none_left_.NotifyAll();
  }
  for (const Waiting& step : waiting) compiled.ok() ? step.run() : step.end(compiled);
}

void StepRunner::Start(const std::shared_ptr<ClientCall>& call, Cancellation* cancellation,
                       bool here, const Done& end) {
  const auto run = [this, call, cancellation, end] {
    master_.RunStepAsync(call.get(), cancellation, end);
  };
  if (master_.RunStepMayBlock(*call)) return Compile(*call, {run, end, cancellation});
  if (here) return run();
  pool_.Submit(run);
}

void StepRunner::End(const ClientCall& call, std::function<void()> end) {
  size_t num_bytes = call.metadata.ByteSizeLong();
  for (const Tensor& tensor : call.fetched) num_bytes += tensor.num_bytes();
  // An answer does not wait behind kernels.
  if (num_bytes <= kMostWrittenHere || !pool_.SubmitIfFree(end)) end();
}

void StepRunner::RunStep(const RunStepRequest& request, RunStepResponse* response,
                         Cancellation* cancellation, bool here, const Done& done) {
  auto call = std::make_shared<ClientCall>();
  const auto end = [this, call, response, done,
                    in_body = request.store_errors_in_response_body()](Status status) {
    End(*call, [call, response, done, in_body, s = std::move(status)]() mutable {
      if (s.ok()) s = CatchExceptions([&] { return WriteResponse(call.get(), response); });
      *response->mutable_metadata() = std::move(call->metadata);
      // An error of the step must not look like one of the connection, which clients repeat.
      if (!s.ok() && in_body) {
        response->clear_tensor();
        response->set_status_code(static_cast<error::Code>(s.code()));
        response->set_status_error_message(WireMessage(s));
        s = OkStatus();
      }
      done(AnswerStatus(std::move(s)));
    });
  };
  const Status read = CatchExceptions([&] { return ReadRequest(request, call.get()); });
  if (!read.ok()) return end(read);
  Start(call, cancellation, here, end);
}

void StepRunner::RunCallable(const RunCallableRequest& request, RunCallableResponse* response,
                             Cancellation* cancellation, const Done& done) {
  auto call = std::make_shared<ClientCall>();
  const auto end = [this, call, response, done](Status status) {
    End(*call, [call, response, done, s = std::move(status)]() mutable {
      if (s.ok()) s = CatchExceptions([&] { return WriteResponse(call.get(), response); });
      *response->mutable_metadata() = std::move(call->metadata);
      done(AnswerStatus(std::move(s)));
    });
  };
  const Status read = CatchExceptions([&] { return ReadRequest(master_, request, call.get()); });
  if (!read.ok()) return end(read);
  Start(call, cancellation, true, end);
}

void ServeMaster(RpcServer& server, Master& master, BlockingCalls& calls, StepRunner& steps) {
  Blocking<CreateSessionRequest, CreateSessionResponse>(
      server, calls, "CreateSession", [&master](const auto& request, auto* response, auto* end) {
        return master.CreateSession(request, response, end);
      });
  Blocking<ExtendSessionRequest, ExtendSessionResponse>(
      server, calls, "ExtendSession", [&master](const auto& request, auto* response, auto* end) {
        return master.ExtendSession(request, response, end);
      });
  Blocking<CloseSessionRequest, CloseSessionResponse>(
      server, calls, "CloseSession",
      [&master](const auto& request, auto*, auto*) { return master.CloseSession(request); });
  Blocking<MakeCallableRequest, MakeCallableResponse>(
      server, calls, "MakeCallable", [&master](const auto& request, auto* response, auto* end) {
        return master.MakeCallable(request, response, end);
      });
  Blocking<ReleaseCallableRequest, ReleaseCallableResponse>(
      server, calls, "ReleaseCallable",
      [&master](const auto& request, auto*, auto*) { return master.ReleaseCallable(request); });
  Blocking<PartialRunSetupRequest, PartialRunSetupResponse>(
      server, calls, "PartialRunSetup", [&master](const auto& request, auto* response, auto* end) {
        return master.SetUpPartialRun(request, response, end);
      });
  Blocking<ListDevicesRequest, ListDevicesResponse>(
      server, calls, "ListDevices", [&master](const auto& request, auto* response, auto* end) {
        return master.ListDevices(request, response, end);
      });
  Blocking<ResetRequest, ResetResponse>(
      server, calls, "Reset",
      [&master](const auto& request, auto*, auto* end) { return master.Reset(request, end); });
  server.Handle<RunStepRequest, RunStepResponse>(
      kMasterService + "RunStep",
      [&steps](const RunStepRequest& request, RunStepResponse* response, Cancellation* cancellation,
               const Done& done) { steps.RunStep(request, response, cancellation, true, done); });
  server.Handle<RunCallableRequest, RunCallableResponse>(
      kMasterService + "RunCallable",
      [&steps](const RunCallableRequest& request, RunCallableResponse* response,
               Cancellation* cancellation,
               const Done& done) { steps.RunCallable(request, response, cancellation, done); });
}

}  // namespace tenon
