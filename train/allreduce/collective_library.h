// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "core/base/status.h"
#include "runtime/collectives/collective_backend.h"

namespace tenon {

/// The name of the plugin by which all ranks join, of what each wants: "gloo"; "mpi", which is that
/// of the mpirun that has started the process; or "auto", which leaves it to the others, and is MPI
/// where all ranks are those of such an mpirun and its plugin loads, else Gloo. Blocks until the
/// first rank has heard of all, which has to be there within `own.start_limit`. The error of any
/// rank is that of all: InvalidArgument where two want different ones or an mpirun has other
/// numbers, FailedPrecondition where one wants MPI and no mpirun has started it, or a plugin does
/// not load, DeadlineExceeded for one that has not come. `notice` is told why it is not MPI; it may
/// be null.
StatusOr<std::string> AgreeOnLibrary(const std::string& wanted, const RankOptions& own,
                                     const std::function<void(const std::string&)>& notice = {});

}  // namespace tenon
