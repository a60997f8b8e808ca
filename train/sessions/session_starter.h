// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <source_location>
#include <string>

#include "runtime/device/machine_clock.h"
#include "runtime/session/session.h"
#include "train/saver/saver.h"

namespace tenon {

/// Opens a session of a graph, such as `[&] { return server.MakeSession(graph); }`.
using SessionOpener = std::function<StatusOr<std::unique_ptr<Session>>()>;

struct SessionStarterOptions {
  /// One worker is the chief: it gives the variables their values, and the others wait until it
  /// has.
  bool is_chief = true;
  /// Restores checkpoints; null: variables are only initialised. Must outlive the starter.
  const Saver* saver = nullptr;
  /// Where the chief looks for the latest checkpoint; empty: nowhere.
  std::string checkpoint_dir = {};
  /// Called by the chief after it has run the initializer, and not when it has restored; may be
  /// null.
  std::function<Status(Session&)> init_fn = {};
  /// Pause between two looks at whether the variables are ready.
  std::chrono::milliseconds recovery_wait{200};
  /// How long a worker that is not the chief waits for the variables.
  std::chrono::milliseconds ready_deadline{std::chrono::minutes(10)};
  /// Gets a line for people when something was restored, and every `notice_interval` while it waits
  /// for the variables; may be null.
  std::function<void(const std::string& line)> notice = {};
  std::chrono::milliseconds notice_interval{5000};
  /// Whether the chief lives, as Server::AskIfAlive says it: a worker that waits for it asks every
  /// notice_interval. Null: nobody knows.
  std::function<Status()> chief_life = {};
  /// How long a chief to which there is no connection may take to return, for a worker that has
  /// trained with it.
  std::chrono::milliseconds chief_return_limit{30000};
  /// The clock by which it waits; must outlive it.
  Clock* clock = &MachineClock();
  /// Where mistakes are reported.
  std::source_location location = std::source_location::current();
};

/// Opens sessions in which every variable has a value (tf.train.SessionManager): the chief restores
/// the latest checkpoint, or runs the initializer when there is none; the others wait for it.
/// Variables that have values keep them: a chief that joins late, or again, loses nothing.
class SessionStarter {
 public:
  /// Adds the nodes it needs to the graph that is being built: the initializers, "init" and
  /// "init_local", and the report of what is not initialised yet.
  explicit SessionStarter(SessionStarterOptions options);

  /// A session of `open` when every variable has a value. Local variables get their initial values
  /// in each. `has_trained` says that there was such a session before. DeadlineExceeded names the
  /// variables that are missing, or says that the chief is gone.
  StatusOr<std::unique_ptr<Session>> Prepare(const SessionOpener& open,
                                             bool has_trained = false) const;

 private:
  /// The names of the first variables without a value, joined; empty when all have one.
  StatusOr<std::string> Missing(Session& session) const;
  Status RestoreOrInitialize(Session& session) const;

  const SessionStarterOptions options_;
  std::string init_, init_local_, report_;
};

}  // namespace tenon
