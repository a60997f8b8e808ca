// SPDX-License-Identifier: Apache-2.0
#include "distributed/protocol/credentials.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace tenon {
namespace {

StatusOr<std::string> ReadSecret(const std::string& path, const char* what) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  if (file) content << file.rdbuf();
  if (!file || content.str().empty()) {
    return NotFound("cannot read the ", what, " '", path,
                    "': ", file ? "it is empty" : std::strerror(errno));
  }
  return content.str();
}

}  // namespace

bool IsToken(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

StatusOr<Credentials> ReadCredentials(const CredentialFiles& files) {
  Credentials credentials;
  const int named = !files.tls_cert.empty() + !files.tls_key.empty() + !files.tls_ca.empty();
  if (named != 0 && named != 3) {
    return InvalidArgument(
        "TLS needs a certificate, its key and the authority's certificate; found ", named,
        " of the three");
  }
  if (named == 3) {
    TENON_ASSIGN_OR_RETURN(credentials.tls_cert, ReadSecret(files.tls_cert, "certificate"));
    TENON_ASSIGN_OR_RETURN(credentials.tls_key, ReadSecret(files.tls_key, "key"));
    TENON_ASSIGN_OR_RETURN(credentials.tls_ca, ReadSecret(files.tls_ca, "authority's certificate"));
  }
  if (!files.token.empty()) {
    TENON_ASSIGN_OR_RETURN(const std::string text, ReadSecret(files.token, "token"));
    credentials.token = text.substr(0, text.find_first_of("\r\n"));
    if (!IsToken(credentials.token)) {
      return InvalidArgument("the first line of the token file '", files.token,
                             "' must be printable ASCII without spaces, and not empty");
    }
  }
  return credentials;
}

}  // namespace tenon
