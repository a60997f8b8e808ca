// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/rpc/security.h"

#include <grpc/support/log.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/strings.h"
#include "runtime/device/machine_clock.h"

namespace tenon {
namespace {

constexpr char kTokenKey[] = "tenon-token";

/// Whether this thread tries credentials, of which gRPC would log what is wrong in several lines.
thread_local bool tries_credentials = false;

/// Says why clients are refused, one line in some seconds: a client tries again many times a
/// second.
void SayRefusal(std::string_view why) {
  constexpr std::chrono::seconds kPause{10};
  static std::mutex mu;
  static std::optional<Clock::Time> last;
  static int unsaid = 0;
  const std::lock_guard lock(mu);
  const Clock::Time now = MachineClock().Now();
  if (last && now - *last < kPause) {
    ++unsaid;
    return;
  }
  last = now;
  const std::string others = unsaid == 0 ? "" : StrCat("; ", unsaid, " others before");
  unsaid = 0;
  std::fprintf(stderr, "a client was refused: %s%s\n", std::string(why).c_str(), others.c_str());
}

/// gRPC logs each client that does not get through the handshake with the names of its sources.
void LogHandshakesInWords() {
  static std::once_flag once;
  std::call_once(once, [] {
    gpr_set_log_function([](gpr_log_func_args* args) {
      if (tries_credentials) return;
      const std::string_view message = args->message;
      const bool is_handshake =
          std::string_view(args->file).find("ssl_transport_security") != std::string_view::npos &&
          message.find("Handshake failed") != std::string_view::npos;
      if (!is_handshake) {
        std::fprintf(stderr, "gRPC: %s\n", args->message);
      } else if (message.find("WRONG_VERSION_NUMBER") != std::string_view::npos ||
                 message.find("wrong version number") != std::string_view::npos) {
        SayRefusal("it does not use TLS, as this server does");
      } else {
        SayRefusal(message);
      }
    });
  });
}

}  // namespace

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsOf(const Credentials& credentials) {
  if (!credentials.has_tls()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = credentials.tls_ca;
  options.pem_private_key = credentials.tls_key;
  options.pem_cert_chain = credentials.tls_cert;
  return grpc::SslCredentials(options);
}

std::shared_ptr<grpc::ServerCredentials> ServerCredentialsOf(const Credentials& credentials) {
  if (!credentials.has_tls()) return grpc::InsecureServerCredentials();
  LogHandshakesInWords();
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = credentials.tls_ca;
  options.pem_key_cert_pairs.push_back({credentials.tls_key, credentials.tls_cert});
  return grpc::SslServerCredentials(options);
}

Status CheckServerCredentials(const Credentials& credentials) {
  if (!credentials.has_tls()) return OkStatus();
  // Only where gRPC itself listens does it say so: a server that never serves.
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", ServerCredentialsOf(credentials), &port);
  tries_credentials = true;
  const std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server != nullptr) server->Shutdown();
  queue->Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) {
  }
  tries_credentials = false;
  if (server != nullptr && port != 0) return OkStatus();
  return InvalidArgument(
      "the TLS certificate, its key and the authority's certificate do not make a "
      "server: one of them is no PEM file of its kind, or the key is another's");
}

void AddToken(const Credentials& credentials, grpc::ClientContext* context) {
  if (!credentials.token.empty()) context->AddMetadata(kTokenKey, credentials.token);
}

bool HasToken(const Credentials& credentials, const grpc::ServerContextBase& context) {
  if (credentials.token.empty()) return true;
  const auto found = context.client_metadata().find(kTokenKey);
  if (found == context.client_metadata().end()) return false;
  const std::string& wanted = credentials.token;
  unsigned difference = found->second.size() == wanted.size() ? 0 : 1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const char c = i < found->second.size() ? found->second.data()[i] : '\0';
    difference |= static_cast<unsigned char>(c ^ wanted[i]);
  }
  return difference == 0;
}

bool IsFromLoopback(const grpc::ServerContextBase& context) {
  const std::string peer = context.peer();
  return peer.starts_with("ipv4:127.") || peer.starts_with("ipv6:[::1]") ||
         peer.starts_with("ipv6:%5B::1%5D");
}

}  // namespace tenon
