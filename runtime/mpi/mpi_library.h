// SPDX-License-Identifier: Apache-2.0
#pragma once

// The C++ names of both libraries are of no use here.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <string_view>

#include "core/base/status.h"

namespace tenon {

/// The library whose headers these are, as it names itself.
#if defined(OPEN_MPI)
inline constexpr std::string_view kMpiLibrary = "Open MPI";
#else
inline constexpr std::string_view kMpiLibrary = "MPICH";
#endif

/// OK, or what MPI says about it.
Status StatusOfMpi(int code);

/// Whether MPI has done this, or what it says; a request that is none is done.
StatusOr<bool> IsDone(MPI_Request* request);

}  // namespace tenon
