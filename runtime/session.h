// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/graph.h"
#include "core/tensor.h"
#include "runtime/step_trace.h"

namespace tenon {

/// How one step runs.
struct StepOptions {
  /// The step fails with DeadlineExceeded when it takes longer; zero: no limit.
  std::chrono::milliseconds timeout{0};
  /// When not null, gets a record of every node that ran.
  std::vector<NodeTrace>* trace = nullptr;
};

/// A signature of steps, looked up and compiled once: the fastest way to run the same step often.
/// Must not outlive its session. Thread-safe.
class PreparedStep {
 public:
  virtual ~PreparedStep() = default;
  /// Runs a step with the feeds in the order of Prepare; `fetched` gets the fetches in theirs.
  virtual Status Run(const std::vector<Tensor>& feeds, std::vector<Tensor>* fetched,
                     const StepOptions& options = {}) = 0;
};

/// Runs steps of a graph: in this process (MakeLocalSession) or on a cluster
/// (MakeRemoteSession). Variables keep their values between steps. Thread-safe: steps may run at
/// once, without isolation from each other.
///
///   auto session = MakeLocalSession(root.graph());
///   session->Run({}, {}, {"init"});
///   auto loss = session->Run({{"x", batch}}, {"loss"}, {"train"});
class Session {
 public:
  using Feeds = std::vector<std::pair<std::string, Tensor>>;

  virtual ~Session() = default;

  /// Adds to the session the nodes of `graph` that it does not have, which must be an extension of
  /// what it was made from.
  virtual Status Extend(const Graph& graph) = 0;

  /// Feeds, fetches and targets by name: "node" or "node:output"; targets are nodes that run
  /// without giving a value. Returns one tensor per fetch.
  virtual StatusOr<std::vector<Tensor>> Run(const Feeds& feeds,
                                            const std::vector<std::string>& fetches,
                                            const std::vector<std::string>& targets = {},
                                            const StepOptions& options = {}) = 0;

  virtual StatusOr<std::unique_ptr<PreparedStep>> Prepare(
      const std::vector<std::string>& feeds, const std::vector<std::string>& fetches,
      const std::vector<std::string>& targets = {}) = 0;

  /// Cancels the steps that run and waits for their end; later calls fail. The destructor does it
  /// too.
  virtual Status Close() = 0;
};

}  // namespace tenon
