// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <source_location>
#include <string>

#include "distributed/server.h"
#include "runtime/session.h"
#include "train/variables.h"

namespace tenon {

struct SupervisorOptions {
  /// One worker is the chief: it initialises the variables, and the others wait until it has.
  bool is_chief = true;
  /// Pause between two looks at whether the variables are ready.
  std::chrono::milliseconds recovery_wait{200};
  /// How long a worker that is not the chief waits for the variables.
  std::chrono::milliseconds ready_deadline{std::chrono::minutes(10)};
  /// Gets a line for people every `notice_interval` while it waits for the variables; may be null.
  /// (While the session opens, ServerOptions::notice does.)
  std::function<void(const std::string& line)> notice = {};
  std::chrono::milliseconds notice_interval{5000};
  /// Where mistakes are reported.
  std::source_location location = std::source_location::current();
};

/// Starts training sessions so that replicas agree on who initialises (tf.train.Supervisor).
///
///   Supervisor supervisor({.is_chief = task == 0});
///   auto session = supervisor.PrepareOrWaitForSession(*server, graph);
class Supervisor {
 public:
  /// Adds the nodes it needs to the graph that is being built: the initializer, "init", and the
  /// report of what is not initialised yet.
  explicit Supervisor(SupervisorOptions options);

  /// Opens a session with `open` and returns it when every variable has a value: the chief runs the
  /// initializer unless all have one already, so that a chief that joins late, or again, loses
  /// nothing. DeadlineExceeded names the variables that are missing.
  StatusOr<std::unique_ptr<Session>> PrepareOrWaitForSession(
      const std::function<StatusOr<std::unique_ptr<Session>>()>& open) const;
  /// The same on the cluster of `server`.
  StatusOr<std::unique_ptr<Session>> PrepareOrWaitForSession(Server& server, const Graph& graph) const;

 private:
  /// The names of the variables without a value, joined; empty when all have one.
  StatusOr<std::string> Missing(Session& session) const;

  const SupervisorOptions options_;
  std::string init_;
  std::string report_;
};

}  // namespace tenon
