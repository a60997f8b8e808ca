// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/rpc/status.h"

#include <utf8proc.h>

namespace tenon {

std::string WireMessage(const Status& status) {
  std::string_view rest = Message(status);
  std::string out;
  out.reserve(rest.size());
  while (!rest.empty()) {
    utf8proc_int32_t code_point;
    const auto size = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(rest.data()),
                                       static_cast<utf8proc_ssize_t>(rest.size()), &code_point);
    if (size > 0) {
      out.append(rest.substr(0, size));
      rest.remove_prefix(size);
    } else {
      StrAppend(&out, "\\x", absl::Hex(static_cast<unsigned char>(rest[0]), absl::kZeroPad2));
      rest.remove_prefix(1);
    }
  }
  return out;
}

grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  constexpr size_t kMaxMessage = 3072;
  std::string message = WireMessage(status);
  if (message.size() > kMaxMessage) {
    message.resize(kMaxMessage);  // gRPC encodes what this cuts a character into
    message += " ... [truncated]";
  }
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message);
}

Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return OkStatus();
  return Status(static_cast<StatusCode>(status.error_code()), status.error_message());
}

std::string_view ConnectionHint(std::string_view said, bool has_tls) {
  const auto says = [&](std::string_view text) { return said.find(text) != std::string::npos; };
  if (says("C-ares") || says("DNS resolution failed")) {
    return "; no address is known for that host";
  }
  if (has_tls && (says("SSL") || says("handshake"))) {
    return "; perhaps the server does not use TLS, or another authority's certificates";
  }
  if (has_tls && says("Socket closed")) {
    return "; perhaps the server does not accept this side's certificate";
  }
  if (!has_tls && says("Socket closed")) {
    return "; perhaps the server wants TLS (--tls_cert, --tls_key, --tls_ca)";
  }
  if (says("SETTINGS frame")) {
    return "; it takes connections but does not answer: it hangs, or is no server of Tenon's or "
           "TensorFlow's";
  }
  return says("HTTP/2") || says("http1") ? "; it is no server of Tenon's or TensorFlow's" : "";
}

Status ConnectionError(const grpc::Status& status, const std::string& address,
                       const Credentials& credentials) {
  const std::string& said = status.error_message();
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return DeadlineExceeded(address,
                            " takes connections but did not answer in time: it hangs, or is ",
                            "no server of Tenon's or TensorFlow's");
  }
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE) return FromGrpc(status);
  return Unavailable("the server at ", address, " is unavailable: ", said,
                     ConnectionHint(said, credentials.has_tls()));
}

}  // namespace tenon
