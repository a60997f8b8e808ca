// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/base/status.h"
#include "distributed/protocol/server.h"

// Mistakes in the address that a cluster gives to this task, and waiting for its name.

namespace tenon {

/// Waits until the name of this task's host can be resolved, which in a cluster that starts may
/// take a while, as long as sessions would wait for the task. What is wrong then is said by who
/// listens.
void AwaitName(const ServerOptions& options, const std::string& address);

/// FailedPrecondition when `address` can be reached from other machines, there are no credentials
/// and the options do not say that this is meant.
Status CheckListening(const ServerOptions& options, const std::string& address);

/// Says that tasks of other hosts do not find this one, whose name is a loopback address here: as
/// Debian's /etc/hosts has it, 127.0.1.1.
void NoticeHiddenHost(const ServerOptions& options, const std::string& address);

/// Why the address of a task cannot be had, with the task that answers there. Two processes with
/// one number are a slip of scripts that start several on a host; then another task of the job
/// was never started.
Status WithOccupant(const Status& why, const ServerOptions& options);

}  // namespace tenon
