// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <grpcpp/generic/generic_stub.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "distributed/grpc/rpc/channel.h"
#include "distributed/grpc/rpc/message_bytes.h"
#include "distributed/grpc/rpc/security.h"
#include "distributed/protocol/cluster_spec.h"
#include "distributed/protocol/server.h"

// Clients that keep to no protocol but the one they choose.

namespace tenon::testing {

/// A connection on which any bytes can be sent.
class RawSocket {
 public:
  explicit RawSocket(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    const timeval limit{2, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  }
  ~RawSocket() { close(fd_); }
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  bool connected() const { return connected_; }
  bool Send(const std::string& bytes) {
    return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  /// What comes next; empty when the server has hung up or says nothing for two seconds.
  std::string Receive() {
    char buffer[4096];
    const ssize_t n = recv(fd_, buffer, sizeof(buffer), 0);
    return n > 0 ? std::string(buffer, n) : "";
  }

 private:
  const int fd_ = socket(AF_INET, SOCK_STREAM, 0);
  bool connected_ = false;
};

/// Calls any method with any bytes, one call at a time.
class RawCaller {
 public:
  explicit RawCaller(const std::string& target, const std::string& token = "")
      : stub_(OpenChannel(*AddressOfTarget(target))) {
    credentials_.token = token;
  }

  grpc::Status Call(const std::string& method, const std::string& request,
                    std::chrono::milliseconds limit = std::chrono::seconds(20),
                    std::string* answer = nullptr, bool compressed = false) {
    grpc::ClientContext context;
    AddToken(credentials_, &context);
    context.set_deadline(std::chrono::system_clock::now() + limit);
    if (compressed) context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    const grpc::Slice slice(request);
    const grpc::ByteBuffer message(&slice, 1);
    const auto call = stub_.PrepareUnaryCall(&context, method, message, &queue_);
    call->StartCall();
    grpc::ByteBuffer response;
    grpc::Status status;
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
    grpc::Slice whole;
    if (answer != nullptr && status.ok() && response.DumpToSingleSlice(&whole).ok()) {
      answer->assign(reinterpret_cast<const char*>(whole.begin()), whole.size());
    }
    return status;
  }

  template <typename Request, typename Response>
  grpc::Status Call(const std::string& method, const Request& request, Response* response,
                    std::chrono::milliseconds limit = std::chrono::seconds(20)) {
    std::string answer;
    const grpc::Status status = Call(method, request.SerializeAsString(), limit, &answer);
    if (status.ok() && !response->ParseFromString(answer)) {
      return grpc::Status(grpc::StatusCode::INTERNAL, "the answer cannot be read");
    }
    return status;
  }

 private:
  Credentials credentials_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
};

}  // namespace tenon::testing
