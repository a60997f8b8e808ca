// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

// The secret of a job whose tasks are on several hosts, made when it is launched. Tasks get it by
// the variable kTokenVariable (distributed/resolver/task_credentials.h), which only their account
// reads, and never on a command line.

namespace tenon::tools {

/// A new secret: 32 random bytes of the system as 64 hexadecimal digits.
StatusOr<std::string> MakeJobToken();

/// Whether a job that runs this command wants a secret from its launcher. It does unless the
/// command has flags of its own that say who may call: --token_file, --tls_cert and its neighbours,
/// or --insecure.
bool WantsJobToken(const std::vector<std::string>& command);

/// Whether the command has flags of TLS, by which its tasks speak to nobody without a certificate.
bool HasTlsFlags(const std::vector<std::string>& command);

/// The variable with which the tasks of such a job are started, "TENON_TOKEN=...": a new secret, or
/// nothing where this process's environment has one, which tasks inherit, or where none is wanted.
StatusOr<std::vector<std::string>> JobTokenVariables(const std::vector<std::string>& command);

}  // namespace tenon::tools
