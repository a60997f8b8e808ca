// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/health_service.h"

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/strings.h"
#include "distributed/grpc/rpc/message_bytes.h"
#include "proto/health.pb.h"

namespace tenon {
namespace {

constexpr char kCheck[] = "/grpc.health.v1.Health/Check";
constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";
/// The first one is the server as a whole.
constexpr std::array<std::string_view, 3> kHealthyServices = {"", "tensorflow.MasterService",
                                                              "tensorflow.WorkerService"};

bool IsServed(std::string_view service) {
  for (const std::string_view served : kHealthyServices) {
    if (service == served) return true;
  }
  return false;
}

/// A caller who wants to hear of changes, of which there are none: the first answer is the last
/// one. It owns itself until the call has ended.
class HealthWatch final : public std::enable_shared_from_this<HealthWatch> {
 public:
  explicit HealthWatch(std::shared_ptr<ServedRpc> rpc) : rpc_(std::move(rpc)) {}

  void Start() {
    self_ = shared_from_this();
    rpc_->stream().Read(&request_, read_.tag());
  }

 private:
  struct Event final : Completion {
    Event(HealthWatch& watch, void (HealthWatch::*then)(bool ok)) : watch(watch), then(then) {}
    void Complete(bool ok) override { (watch.*then)(ok); }
    HealthWatch& watch;
    void (HealthWatch::*const then)(bool ok);
  };

  void OnRead(bool ok) {
    const std::shared_ptr<HealthWatch> keep = std::exchange(self_, nullptr);
    health::HealthCheckRequest request;
    if (!ok || !ReadMessage(&request_, &request)) {
      return rpc_->End(InvalidArgument("the request of ", kWatch, " cannot be read"));
    }
    health::HealthCheckResponse response;
    response.set_status(IsServed(request.service()) ? health::HealthCheckResponse::SERVING
                                                    : health::HealthCheckResponse::SERVICE_UNKNOWN);
    if (!WriteMessage(response, &response_)) return rpc_->End(Internal("no answer"));
    self_ = keep;
    rpc_->stream().Write(response_, written_.tag());
  }

  void OnWritten(bool ok) {
    const std::shared_ptr<HealthWatch> keep = std::exchange(self_, nullptr);
    const auto end = [rpc = rpc_.get()](const Status& why) { rpc->End(why); };
    if (!ok) return end(Cancelled("the caller is gone"));
    // The call lives while its cancellation runs.
    if (rpc_->cancellation().Register(end) == Cancellation::kAlreadyCancelled) {
      end(rpc_->cancellation().status());
    }
  }

  const std::shared_ptr<ServedRpc> rpc_;
  grpc::ByteBuffer request_, response_;
  Event read_{*this, &HealthWatch::OnRead}, written_{*this, &HealthWatch::OnWritten};
  std::shared_ptr<HealthWatch> self_;
};

}  // namespace

void ServeHealth(RpcServer& server) {
  server.Handle<health::HealthCheckRequest, health::HealthCheckResponse>(
      kCheck, [](const health::HealthCheckRequest& request, health::HealthCheckResponse* response,
                 Cancellation*, const auto& done) {
        if (!IsServed(request.service())) {
          return done(NotFound("this server has no service '", request.service(), "'"));
        }
        response->set_status(health::HealthCheckResponse::SERVING);
        done(OkStatus());
      });
  server.HandleStream(kWatch, [](std::shared_ptr<ServedRpc> rpc) {
    std::make_shared<HealthWatch>(std::move(rpc))->Start();
  });
  for (const char* method : {kCheck, kWatch}) server.OpenToAnybody(method);
}

}  // namespace tenon
