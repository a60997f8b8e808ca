// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/job_store.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "core/base/strings.h"
#include "distributed/grpc/rpc/channel.h"
#include "distributed/grpc/rpc/deadline.h"
#include "distributed/grpc/rpc/security.h"
#include "distributed/grpc/rpc/status.h"
#include "proto/key_value_service.grpc.pb.h"

namespace tenon {
namespace {

const std::string kKeyValueService = "/tenon.cluster.KeyValueService/";
constexpr std::chrono::milliseconds kStoreCallLimit{5000};
/// A value that is not there is asked for again after the first pause, and ever more seldom.
constexpr std::chrono::milliseconds kFirstStorePause{5}, kLastStorePause{100};

class JobStore final : public KeyValueStore {
 public:
  JobStore(std::string address, Credentials credentials, Clock& clock)
      : address_(std::move(address)),
        credentials_(std::move(credentials)),
        clock_(clock),
        stub_(cluster::KeyValueService::NewStub(OpenChannel(address_, credentials_))) {}

  Status Put(const std::string& key, const std::string& value,
             std::chrono::milliseconds limit) override {
    return Send(key, value, false, limit);
  }
  Status Replace(const std::string& key, const std::string& value,
                 std::chrono::milliseconds limit) override {
    return Send(key, value, true, limit);
  }

  StatusOr<std::string> Get(const std::string& key, std::chrono::milliseconds limit) override {
    cluster::GetRequest request;
    request.set_key(key);
    std::string value;
    TENON_RETURN_IF_ERROR(Repeat(limit, [&](grpc::ClientContext* context) -> StatusOr<bool> {
      cluster::GetResponse response;
      TENON_RETURN_IF_ERROR(Error(stub_->Get(context, request, &response)));
      value = response.value();
      return response.found();
    }));
    return value;
  }

 private:
  Status Send(const std::string& key, const std::string& value, bool replace,
              std::chrono::milliseconds limit) {
    cluster::PutRequest request;
    request.set_key(key);
    request.set_value(value);
    request.set_replace(replace);
    return Repeat(limit, [&](grpc::ClientContext* context) -> StatusOr<bool> {
      cluster::PutResponse response;
      TENON_RETURN_IF_ERROR(Error(stub_->Put(context, request, &response)));
      return true;
    });
  }

  Status Error(const grpc::Status& status) const {
    return ConnectionError(status, address_, credentials_);
  }

  /// Until the call says that it is done, as long as nobody answers, and no longer than `limit`.
  Status Repeat(std::chrono::milliseconds limit,
                const std::function<StatusOr<bool>(grpc::ClientContext* context)>& call) {
    const Clock::Time end = clock_.Now() + limit;
    for (auto pause = kFirstStorePause;; pause = std::min(2 * pause, kLastStorePause)) {
      grpc::ClientContext context;
      AddToken(credentials_, &context);
      context.set_deadline(GrpcDeadline(kStoreCallLimit));
      const StatusOr<bool> done = call(&context);
      if (done.ok() && *done) return OkStatus();
      const bool may_pass = done.ok() || done.status().code() == StatusCode::kUnavailable;
      if (!may_pass) return done.status();
      if (clock_.Now() + pause >= end) {
        return done.ok() ? DeadlineExceeded("it has not come within ", limit.count(), " ms")
                         : done.status();
      }
      clock_.SleepFor(pause);
    }
  }

  const std::string address_;
  const Credentials credentials_;
  Clock& clock_;
  const std::unique_ptr<cluster::KeyValueService::Stub> stub_;
};

}  // namespace

void JobValues::Serve(RpcServer& server) {
  using Done = std::function<void(Status)>;
  server.Handle<cluster::PutRequest, cluster::PutResponse>(
      kKeyValueService + "Put",
      [this](const cluster::PutRequest& request, auto*, Cancellation*, const Done& done) {
        done(Put(request.key(), request.value(), request.replace()));
      });
  server.Handle<cluster::GetRequest, cluster::GetResponse>(
      kKeyValueService + "Get",
      [this](const cluster::GetRequest& request, cluster::GetResponse* response, Cancellation*,
             const Done& done) {
        std::string value;
        response->set_found(Get(request.key(), &value));
        response->set_value(std::move(value));
        done(OkStatus());
      });
}

Status JobValues::Put(const std::string& key, const std::string& value, bool replace) {
  MutexLock lock(mu_);
  std::string& kept = values_[key];
  if (!kept.empty() && !replace && kept != value) {
    return AlreadyExists("'", key,
                         "' has another value: a job whose tasks find each other by such "
                         "values is started again as a whole");
  }
  const size_t before = kept.empty() ? 0 : key.size() + kept.size();
  const size_t after = key.size() + value.size();
  if (bytes_ - before + after > kMostBytes) {
    if (kept.empty()) values_.erase(key);
    return ResourceExhausted("the values of the job have more than ", kMostBytes >> 20, " MiB");
  }
  bytes_ += after - before;
  kept = value;
  return OkStatus();
}

bool JobValues::Get(const std::string& key, std::string* value) const {
  MutexLock lock(mu_);
  const auto it = values_.find(key);
  if (it == values_.end()) return false;
  *value = it->second;
  return true;
}

std::unique_ptr<KeyValueStore> OpenJobStore(const std::string& address,
                                            const Credentials& credentials, Clock& clock) {
  return std::make_unique<JobStore>(address, credentials, clock);
}

}  // namespace tenon
