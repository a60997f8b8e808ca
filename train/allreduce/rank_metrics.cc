// SPDX-License-Identifier: Apache-2.0
#include "train/allreduce/rank_metrics.h"

#include <set>
#include <vector>

#include "ops/collectives/collectives_ops.h"
#include "ops/control_flow/control_flow_ops.h"
#include "train/metric.h"
#include "train/variables.h"

namespace tenon {
namespace {

constexpr int64_t kSumOp = 1;  // of HorovodAllreduce

}  // namespace

Node* SumMetricsOverRanks() {
  const NameScope scope(UnusedScope("metrics_of_ranks"));
  const NoControlDependencies always;
  Graph& graph = *CurrentBuilding().graph;
  std::set<const Node*> counts;
  for (const Endpoint& count : graph.Collection(kMetricVariables)) counts.insert(count.node);
  std::vector<Output> summed;
  for (const VariableEntry& v : graph.variables()) {
    if (counts.count(v.ref) == 0) continue;
    const ColocateWith beside((Output(v.ref)));
    const Output all = HorovodAllreduce(ReadVariable(v), {.reduce_op = kSumOp});
    summed.push_back(ChangeVariable(v, "Assign", all));
  }
  const ControlDependencies after(summed);
  return NoOp({.name = "sum"});
}

}  // namespace tenon
