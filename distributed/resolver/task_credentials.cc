// SPDX-License-Identifier: Apache-2.0
#include "distributed/resolver/task_credentials.h"

#include <string>

namespace tenon {

StatusOr<Credentials> FindCredentials(const CredentialFiles& files,
                                      const Environment& environment) {
  const bool has_files = !files.tls_cert.empty() || !files.tls_key.empty() ||
                         !files.tls_ca.empty() || !files.token.empty();
  const std::string* const token = environment.Find(kTokenVariable);
  if (has_files || token == nullptr) return ReadCredentials(files);
  if (!IsToken(*token)) {
    return InvalidArgument(kTokenVariable, ": the token must be printable ASCII without spaces");
  }
  Credentials credentials;
  credentials.token = *token;
  return credentials;
}

}  // namespace tenon
