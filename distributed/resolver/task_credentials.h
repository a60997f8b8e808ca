// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/status.h"
#include "distributed/protocol/credentials.h"
#include "distributed/resolver/environment.h"

namespace tenon {

/// The variable by which a launcher hands the secret of a job to its tasks on other hosts, where
/// there may be no file that all of them see. What is on a command line, other accounts read.
inline constexpr char kTokenVariable[] = "TENON_TOKEN";

/// The credentials in a user's files (ReadCredentials), or, where no file is named, the token of
/// the environment. InvalidArgument, naming the variable, for a token that is not printable ASCII.
StatusOr<Credentials> FindCredentials(const CredentialFiles& files,
                                      const Environment& environment = Environment::OfProcess());

}  // namespace tenon
