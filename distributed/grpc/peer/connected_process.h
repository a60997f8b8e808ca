// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string_view>

namespace tenon {

/// Whether `peer`, an address as gRPC names it, is one of this host's, as far as its network
/// namespace goes: "ipv4:127.0.0.1:40000", "ipv6:[::1]:40000", brackets perhaps as %5B and %5D.
bool IsOfThisHost(std::string_view peer);

/// Whether a process of this host has the other end of every connection by TCP that this process
/// has with `peer`, of which there must be one; those not counted that nobody has accepted yet.
/// False also where the system does not tell: in another network namespace, of a process that is
/// not for this one to look at, and without netlink.
///
/// Whoever is called tells its process's number itself, and could name any other. That process
/// would be read in its place.
///
/// Source: sock_diag(7); proc(5), /proc/PID/fd.
bool IsConnectedTo(pid_t process, std::string_view peer);

}  // namespace tenon
