// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/simulated_session.h"

#include <array>

#include "core/proto/proto_io_graph.h"
#include "ops/cuda/device_kind.h"
#include "ops/register.h"
#include "runtime/accelerator/kernels.h"
#include "runtime/accelerator/stream_device.h"
#include "tests/testing/simulated_kernels.h"

namespace tenon::testing {

SimulatedDriver& SharedSimulatedDriver(int index) {
  static const std::array<SimulatedDriver*, 2> drivers = {new SimulatedDriver(1),
                                                          new SimulatedDriver(2)};
  return *drivers[index];
}

const OpRegistry& SimulatedOps() {
  static const OpRegistry* const registry = [] {
    auto* ops = new OpRegistry;
    RegisterLibraryOps(*ops);
    RegisterAcceleratorKernels(*ops, kCuda);
    RegisterSimulatedKernels(*ops);
    return ops;
  }();
  return *registry;
}

StatusOr<std::unique_ptr<Session>> MakeSimulatedSession(const Graph& graph,
                                                        LocalSessionOptions options) {
  GraphDef proto;
  TENON_RETURN_IF_ERROR(GraphToProto(graph, &proto));
  TENON_ASSIGN_OR_RETURN(const Graph read,
                         GraphFromProto(proto, SimulatedOps(), {.allow_internal_names = true}));
  if (options.resources == nullptr) options.resources = std::make_shared<ResourceStore>();
  for (const int index : {0, 1}) {
    options.other_devices.push_back(std::make_shared<StreamDevice>(
        StrCat("/job:localhost/replica:0/task:0/device:GPU:", index), kCuda,
        SharedSimulatedDriver(index), int64_t{1} << 30, options.resources, options.files));
  }
  options.allow_soft_placement = true;
  TENON_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, MakeLocalSession(read, options));
  session->AcceptOutputsOf(graph);
  return session;
}

}  // namespace tenon::testing
