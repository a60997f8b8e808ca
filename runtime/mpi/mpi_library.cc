// SPDX-License-Identifier: Apache-2.0
#include "runtime/mpi/mpi_library.h"

#include <array>
#include <cstddef>

namespace tenon {

Status StatusOfMpi(int code) {
  if (code == MPI_SUCCESS) return OkStatus();
  std::array<char, MPI_MAX_ERROR_STRING> text = {};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  return Unavailable(kMpiLibrary, ": ", std::string_view(text.data(), static_cast<size_t>(length)));
}

StatusOr<bool> IsDone(MPI_Request* request) {
  int is_done = 0;
  TENON_RETURN_IF_ERROR(StatusOfMpi(MPI_Test(request, &is_done, MPI_STATUS_IGNORE)));
  return is_done != 0;
}

}  // namespace tenon
