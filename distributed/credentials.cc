// SPDX-License-Identifier: Apache-2.0
#include "distributed/credentials.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

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
    return NotFound("cannot read the ", what, " '", path, "': ",
                    file ? "it is empty" : std::strerror(errno));
  }
  return content.str();
}

bool IsLoopbackAddress(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
  }
  if (address->sa_family != AF_INET6) return false;
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

}  // namespace

StatusOr<Credentials> ReadCredentials(const CredentialFiles& files) {
  Credentials credentials;
  const int named = !files.tls_cert.empty() + !files.tls_key.empty() + !files.tls_ca.empty();
  if (named != 0 && named != 3) {
    return InvalidArgument("TLS needs a certificate, its key and the authority's certificate; found ",
                           named, " of the three");
  }
  if (named == 3) {
    TENON_ASSIGN_OR_RETURN(credentials.tls_cert, ReadSecret(files.tls_cert, "certificate"));
    TENON_ASSIGN_OR_RETURN(credentials.tls_key, ReadSecret(files.tls_key, "key"));
    TENON_ASSIGN_OR_RETURN(credentials.tls_ca, ReadSecret(files.tls_ca, "authority's certificate"));
  }
  if (!files.token.empty()) {
    TENON_ASSIGN_OR_RETURN(const std::string text, ReadSecret(files.token, "token"));
    credentials.token = text.substr(0, text.find_first_of("\r\n"));
    const bool printable =
        std::all_of(credentials.token.begin(), credentials.token.end(),
                    [](char c) { return c > ' ' && c < '\x7f'; });
    if (credentials.token.empty() || !printable) {
      return InvalidArgument("the first line of the token file '", files.token,
                             "' must be printable ASCII without spaces, and not empty");
    }
  }
  return credentials;
}

bool IsLoopback(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return false;
  bool loopback = true;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    loopback &= IsLoopbackAddress(a->ai_addr);
  }
  freeaddrinfo(found);
  return loopback;
}

}  // namespace tenon
