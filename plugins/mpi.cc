// SPDX-License-Identifier: Apache-2.0
//
// libtenon_openmpi.so and libtenon_mpich.so: what a program with Tenon loads when its process
// becomes a rank by MPI, each made with the headers of that library.
#include "core/device/plugin_version.h"
#include "runtime/mpi/mpi_backend.h"

extern "C" const tenon::CollectivesPlugin* TenonCollectivesPlugin() {
  static const tenon::CollectivesPlugin plugin = {tenon::kPluginVersion, tenon::JoinByMpi};
  return &plugin;
}
