// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"

namespace tenon {

/// How the tasks of a job, and their clients, know each other. A value type; empty by default:
/// whoever reaches a port may use it.
struct Credentials {
  /// Contents of PEM files, all three or none. With them connections are encrypted, and both sides
  /// show a certificate that the authority `tls_ca` has signed and that names their host (mutual
  /// TLS).
  std::string tls_cert;
  std::string tls_key;
  std::string tls_ca;
  /// A secret that every call carries and that a server asks for. Without TLS it crosses the
  /// network as plain text.
  std::string token;

  bool has_tls() const { return !tls_cert.empty(); }
  bool empty() const { return !has_tls() && token.empty(); }
};

/// Where credentials are read from, as flags give it; "" for what there is not.
struct CredentialFiles {
  std::string tls_cert;
  std::string tls_key;
  std::string tls_ca;
  std::string token;  // the first line counts
};

/// Whether it can be a secret that calls carry: printable ASCII without spaces, and not empty.
bool IsToken(std::string_view text);

/// InvalidArgument when only some of the TLS files are named, or a token is empty or not printable
/// ASCII; NotFound or Unavailable, naming the file, when one cannot be read.
StatusOr<Credentials> ReadCredentials(const CredentialFiles& files);

}  // namespace tenon
