// SPDX-License-Identifier: Apache-2.0
#include "ops/register.h"

#include "core/device/device_plugin.h"
#include "ops/array/array_ops.h"
#include "ops/audio/audio_ops.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/data/data_ops.h"
#include "ops/declared/declared_ops.h"
#include "ops/image/image_ops.h"
#include "ops/io/io_ops.h"
#include "ops/linalg/linalg_ops.h"
#include "ops/lookup/lookup_ops.h"
#include "ops/math/math_ops.h"
#include "ops/nn/nn_ops.h"
#include "ops/parsing/parsing_ops.h"
#include "ops/queues/queues_ops.h"
#include "ops/ragged/ragged_ops.h"
#include "ops/random/random_ops.h"
#include "ops/sdca/sdca_ops.h"
#include "ops/sequences/sequences_ops.h"
#include "ops/sparse/sparse_ops.h"
#include "ops/spectral/spectral_ops.h"
#include "ops/state/state_ops.h"
#include "ops/strings/strings_ops.h"
#include "ops/summary/summary_ops.h"
#include "ops/tensor_array/tensor_array_ops.h"
#include "ops/tensor_list/tensor_list_ops.h"
#include "ops/training/training_ops.h"

namespace tenon {

const OpRegistry& AllOps() {
  static const OpRegistry* const registry = [] {
    auto* ops = new OpRegistry;
    RegisterAllOps(*ops);
    return ops;
  }();
  return *registry;
}

void RegisterLibraryOps(OpRegistry& ops) {
  for (const auto add :
       {RegisterArrayOps,     RegisterAudioOps,   RegisterControlFlowOps, RegisterDataOps,
        RegisterDeclaredOps,  RegisterImageOps,   RegisterIoOps,          RegisterLinalgOps,
        RegisterLookupOps,    RegisterMathOps,    RegisterNnOps,          RegisterParsingOps,
        RegisterQueuesOps,    RegisterRaggedOps,  RegisterRandomOps,      RegisterSdcaOps,
        RegisterSequencesOps, RegisterSparseOps,  RegisterSpectralOps,    RegisterStateOps,
        RegisterStringsOps,   RegisterSummaryOps, RegisterTensorArrayOps, RegisterTensorListOps,
        RegisterTrainingOps}) {
    add(ops);
  }
}

void RegisterAllOps(OpRegistry& ops) {
  RegisterLibraryOps(ops);
  // Its kernels are of ops that are declared already; once a registry, as everything else.
  if (ops.Declare("", "kernels of the plugin for GPUs")) {
    if (const auto plugin = CudaPlugin(); plugin.ok()) (*plugin)->register_kernels(ops);
  }
}

}  // namespace tenon
