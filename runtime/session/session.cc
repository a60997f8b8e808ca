// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/session.h"

#include <algorithm>

namespace tenon {

Status Session::Extend(const Graph& graph) {
  TENON_RETURN_IF_ERROR(ExtendBy(graph));
  AcceptOutputsOf(graph);
  return OkStatus();
}

StatusOr<std::vector<Tensor>> Session::Run(const StepFeeds& feeds, const StepTensors& fetches,
                                           const StepTensors& targets, const StepOptions& options) {
  TENON_RETURN_IF_ERROR(Check(feeds, fetches, targets));
  return RunStep(feeds.pairs(), fetches.names(), targets.names(), options);
}

void PreparedStep::RunAsync(const std::vector<Tensor>& feeds, Done done,
                            const StepOptions& options) {
  std::vector<Tensor> fetched;
  const Status status = Run(feeds, &fetched, options);
  done(status, status.ok() ? std::move(fetched) : std::vector<Tensor>());
}

StatusOr<std::unique_ptr<PreparedStep>> Session::Prepare(const StepTensors& feeds,
                                                         const StepTensors& fetches,
                                                         const StepTensors& targets) {
  {
    MutexLock lock(graphs_mu_);
    TENON_RETURN_IF_ERROR(CheckAll(feeds, "feed"));
  }
  TENON_RETURN_IF_ERROR(Check({}, fetches, targets));
  TENON_ASSIGN_OR_RETURN(std::unique_ptr<PreparedStep> step,
                         PrepareStep(feeds.names(), fetches.names(), targets.names()));
  step->feed_types_ = feeds.dtypes();
  return step;
}

void Session::AcceptOutputsOf(const Graph& graph) {
  MutexLock lock(graphs_mu_);
  const auto known = std::find_if(graphs_.begin(), graphs_.end(),
                                  [&](const auto& g) { return g.graph == graph.id(); });
  if (known == graphs_.end()) {
    graphs_.push_back({graph.id(), graph.num_ids()});
  } else {
    known->node = graph.num_ids();
  }
}

Status Session::Check(const StepFeeds& feeds, const StepTensors& fetches,
                      const StepTensors& targets) const {
  MutexLock lock(graphs_mu_);
  for (size_t i = 0; i < feeds.pairs().size(); ++i) {
    const auto place = i < feeds.places().size() ? feeds.places()[i] : StepTensor::Place();
    TENON_RETURN_IF_ERROR(CheckOne(feeds.pairs()[i].first, place, "feed"));
  }
  TENON_RETURN_IF_ERROR(feeds.status());
  TENON_RETURN_IF_ERROR(CheckAll(fetches, "fetch"));
  return CheckAll(targets, "target");
}

Status Session::CheckAll(const StepTensors& tensors, std::string_view what) const {
  for (size_t i = 0; i < tensors.names().size(); ++i) {
    const auto place = i < tensors.places().size() ? tensors.places()[i] : StepTensor::Place();
    TENON_RETURN_IF_ERROR(CheckOne(tensors.names()[i], place, what));
  }
  return OkStatus();
}

Status Session::CheckOne(std::string_view name, const StepTensor::Place& place,
                         std::string_view what) const {
  if (name.empty()) {
    return InvalidArgument("a ", what, " has no value in the graph: it could not be built");
  }
  if (place.graph == 0) return OkStatus();
  const auto known = std::find_if(graphs_.begin(), graphs_.end(),
                                  [&](const auto& g) { return g.graph == place.graph; });
  if (known == graphs_.end()) {
    return InvalidArgument(what, " '", name, "' is of another graph than the session's");
  }
  if (place.node >= known->node) {
    return FailedPrecondition(what, " '", name, "' was added to the graph after the session was ",
                              "opened: build it before, or give it by Session::Extend");
  }
  return OkStatus();
}

}  // namespace tenon
