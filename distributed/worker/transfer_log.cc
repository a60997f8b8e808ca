// SPDX-License-Identifier: Apache-2.0
#include "distributed/worker/transfer_log.h"

#include <algorithm>

#include "core/device/rendezvous.h"

namespace tenon {
namespace {

DeviceStepStats* DeviceOf(StepStats& stats, const std::string& device) {
  for (DeviceStepStats& d : *stats.mutable_dev_stats()) {
    if (d.device() == device) return &d;
  }
  DeviceStepStats* const added = stats.add_dev_stats();
  added->set_device(device);
  return added;
}

}  // namespace

void TransferLog::Answer(const LoggingRequest& request, LoggingResponse* response) {
  MutexLock lock(mu_);
  if (request.enable_rpc_logging()) ++masters_;
  // Old masters ask for nothing at all when they want no more.
  const bool empty = !request.enable_rpc_logging() && request.fetch_step_id().empty();
  if (request.disable_rpc_logging() || empty) masters_ = std::max(0, masters_ - 1);
  active_ = masters_ > 0;
  for (const int64_t step : request.fetch_step_id()) {
    const auto found = steps_.find(step);
    if (found == steps_.end()) continue;
    LabeledStepStats* const labelled = response->add_step();
    labelled->set_step_id(step);
    *labelled->mutable_step_stats() = std::move(found->second);
    steps_.erase(found);
  }
  if (request.clear()) steps_.clear();
}

void TransferLog::Add(int64_t step_id, const std::string& key, int64_t begin_ns, int64_t end_ns,
                      int64_t num_bytes) {
  const auto parsed = RendezvousKey::Parse(key);
  if (!parsed.ok()) return;
  MutexLock lock(mu_);
  if (++receives_ > kMaxReceives) {
    steps_.clear();
    receives_ = 1;
  }
  DeviceStepStats* const device = DeviceOf(steps_[step_id], parsed->dst_device);
  NodeExecStats* const stats = device->add_node_stats();
  stats->set_node_name("RecvTensor");
  stats->set_timeline_label(StrCat("[", num_bytes, "B] ", parsed->tensor_name, " from ",
                                   parsed->src_device, " to ", parsed->dst_device));
  const int64_t took = end_ns - begin_ns;
  stats->set_all_start_micros(begin_ns / 1000);
  stats->set_all_start_nanos(begin_ns);
  stats->set_op_end_rel_micros(took / 1000);
  stats->set_op_end_rel_nanos(took);
  stats->set_all_end_rel_micros(took / 1000);
  stats->set_all_end_rel_nanos(took);
  stats->add_output()
      ->mutable_tensor_description()
      ->mutable_allocation_description()
      ->set_requested_bytes(num_bytes);
}

}  // namespace tenon
