// SPDX-License-Identifier: Apache-2.0
#include "distributed/worker/step_stats.h"

#include "core/base/hash_map.h"

namespace tenon {

void TraceToStepStats(const std::vector<NodeTrace>& nodes, StepStats* out) {
  flat_hash_map<std::string, DeviceStepStats*> by_device;
  for (const NodeTrace& n : nodes) {
    DeviceStepStats*& device = by_device[n.device];
    if (device == nullptr) {
      device = out->add_dev_stats();
      device->set_device(n.device);
    }
    NodeExecStats* stats = device->add_node_stats();
    stats->set_node_name(n.name);
    stats->set_timeline_label(StrCat(n.name, " = ", n.op, "()"));
    stats->set_thread_id(static_cast<uint32_t>(n.thread));
    stats->set_all_start_micros(n.start_ns / 1000);
    stats->set_all_start_nanos(n.start_ns);
    const int64_t took = n.end_ns - n.start_ns;
    stats->set_op_end_rel_micros(took / 1000);
    stats->set_op_end_rel_nanos(took);
    stats->set_all_end_rel_micros(took / 1000);
    stats->set_all_end_rel_nanos(took);
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      NodeOutput* output = stats->add_output();
      output->set_slot(static_cast<int>(i));
      TensorDescription* t = output->mutable_tensor_description();
      t->set_dtype(static_cast<DataType>(n.outputs[i].dtype));
      for (const int64_t d : n.outputs[i].shape.dims()) {
        t->mutable_shape()->add_dim()->set_size(d);
      }
      t->mutable_allocation_description()->set_requested_bytes(n.outputs[i].bytes);
    }
  }
}

}  // namespace tenon
