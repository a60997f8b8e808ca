// SPDX-License-Identifier: Apache-2.0
#include "runtime/gloo/own_connections.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

namespace tenon {
namespace {

using NameOfEnd = int (*)(int socket, sockaddr* name, socklen_t* size);

/// An end of a connection over IP; empty for other files.
std::string EndOf(int socket, NameOfEnd name_of) {
  sockaddr_storage end = {};
  socklen_t size = sizeof(end);
  if (name_of(socket, reinterpret_cast<sockaddr*>(&end), &size) != 0) return "";
  if (end.ss_family != AF_INET && end.ss_family != AF_INET6) return "";
  constexpr size_t kBytesOfV4 = offsetof(sockaddr_in, sin_zero);
  constexpr size_t kBytesOfV6 = offsetof(sockaddr_in6, sin6_scope_id);
  return std::string(reinterpret_cast<const char*>(&end),
                     end.ss_family == AF_INET ? kBytesOfV4 : kBytesOfV6);
}

}  // namespace

OwnConnections::OwnConnections(const Wanted& wanted) {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return;
  while (const dirent* const entry = readdir(folder)) {
    const int fd = std::atoi(entry->d_name);  // 0 for . and .., which is no socket of a library
    if (fd <= STDERR_FILENO) continue;
    const std::string peer = EndOf(fd, getpeername);
    if (peer.empty() || !wanted(EndOf(fd, getsockname), peer)) continue;
    // A descriptor of its own stays that of the connection when the library has closed its one.
    const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own >= 0) sockets_.push_back(own);
  }
  closedir(folder);
}

OwnConnections::~OwnConnections() {
  End();
  for (const int socket : sockets_) close(socket);
}

void OwnConnections::End() const {
  for (const int socket : sockets_) shutdown(socket, SHUT_RDWR);
}

}  // namespace tenon
