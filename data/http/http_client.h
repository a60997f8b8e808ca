// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace tenon {

/// The keys and names that sign a request, by Amazon's Signature Version 4.
struct HttpSignature {
  std::string key_id, secret;
  std::string region, service;
};

struct HttpRequest {
  std::string method = "GET";
  std::string url;                   // encoded; parameters in the order of their names
  std::vector<std::string> headers;  // "name: value", all of which are signed
  std::string_view body;             // kept by the caller until the response is there
  std::optional<HttpSignature> signature;
  /// Whether libcurl may not send it again by itself, as it does where a kept connection turns out
  /// to be closed and the server may have got it.
  bool once = false;
  /// Whether this account's ticket of Kerberos says who asks (SPNEGO), where libcurl can.
  bool negotiate = false;
  /// How long a connection may take, and how long none of the bytes may come.
  std::chrono::seconds connect_limit{10};
  std::chrono::seconds silence_limit{30};
};

struct HttpResponse {
  int status = 0;                              // 200
  std::map<std::string, std::string> headers;  // by names in lower case
  std::string body;

  /// The header of that name, in lower case; empty without one.
  std::string Header(const std::string& name) const;
};

/// How servers are reached.
struct HttpOptions {
  bool verify_certificates = true;
  std::string ca_file;  // of certificates to trust; empty: those of the system
};

/// Sends requests by libcurl over HTTP/1.1, and keeps connections for the next ones. Proxies are
/// those of the environment (http_proxy, https_proxy, no_proxy). Thread-safe.
class HttpClient {
 public:
  explicit HttpClient(HttpOptions options = {});
  ~HttpClient();

  /// The whole response, of whatever status; redirections are not followed. Errors: Unavailable
  /// when a connection broke, was silent for too long or brought half a response;
  /// FailedPrecondition when none could be made; InvalidArgument for what another try cannot mend,
  /// such as a certificate nobody trusts; Cancelled soon after `cancelled` has become true.
  StatusOr<HttpResponse> Send(const HttpRequest& request,
                              const std::atomic<bool>* cancelled = nullptr);

 private:
  struct Connections;

  const HttpOptions options_;
  const std::unique_ptr<Connections> connections_;
};

}  // namespace tenon
