// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/op/op_registry.h"
#include "runtime/session/session.h"

namespace tenon::tools {

/// One benchmark: a figure of this system, which the peer measures in its own way under the same
/// name (share/bench/*_peer.py).
struct BenchRow {
  std::string name;
  std::string what;
  std::string unit;
  bool more_is_better = false;
  std::function<StatusOr<double>()> measure;
};

/// Rows within one process: steps, plans, imports.
std::vector<BenchRow> LocalBenchRows(const OpRegistry& ops);
/// Rows of whole steps of training.
std::vector<BenchRow> TrainingBenchRows(const OpRegistry& ops);
/// Rows of inference, whose weights are constants.
std::vector<BenchRow> InferenceBenchRows(const OpRegistry& ops);
/// Rows of graphs of single ops and of input pipelines, which both systems load from files.
std::vector<BenchRow> GraphBenchRows(const OpRegistry& ops);
/// Rows of input pipelines over files.
std::vector<BenchRow> ReaderBenchRows();
/// Rows with servers and workers as processes of their own.
std::vector<BenchRow> ClusterBenchRows(const OpRegistry& ops);

/// Rows of the first GPU, which must be there: steps, a product, copies.
std::vector<BenchRow> DeviceBenchRows(const OpRegistry& ops);

/// While it lives, kernels have no more than one thread.
class OneThread {
 public:
  OneThread() : before_(ThreadBudget()) { SetThreadBudget(1); }
  ~OneThread() { SetThreadBudget(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_;
};

/// The graph share/bench/graphs/`name`.pbtxt, which the peer runs too.
StatusOr<Graph> BenchGraph(const std::string& name, const OpRegistry& ops);
/// The median of the seconds that `steps` steps of such a graph take, once it is prepared.
StatusOr<double> GraphStep(Session& session, int steps);

/// The middle value; REQUIRES: not empty.
double Median(std::vector<double> values);
/// Seconds that `count` calls of `fn` take.
StatusOr<double> TimeCalls(int count, const std::function<Status()>& fn);
/// The median of the seconds that single calls take.
StatusOr<double> MedianCall(int count, const std::function<Status()>& fn);

}  // namespace tenon::tools
