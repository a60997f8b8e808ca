// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

// The protocols of training in step and of the end of a job, without threads, sockets or waiting: a
// parameter server, a chief and its workers as events of one queue, in which messages are lost,
// come twice, late and in another order, and tasks are killed, stopped by signals, halted and
// started again. What decides is the product's own: SyncCoordinator, SyncChief, SyncWorker, JobEnd.
// The simulation does in their stead what sessions, MonitoredTrainingSession and RunReplica do.

namespace tenon::testing {

/// Mistakes that the invariants must find.
enum class PlantedFault {
  kNone,
  /// A worker that a signal has ended, and that is there again, is not waited for.
  kReportStands,
  /// A chief that a signal ends tells the workers that training is over.
  kSignalEndsTraining,
  /// An update whose answer is lost is made again.
  kUpdateIsRepeated,
  /// A worker says only once what it has done.
  kDoneIsSaidOnce,
  /// Workers that say nothing are never given up.
  kNobodyIsLost,
  /// The end of training is told to those workers only that are there.
  kEndIsNotRecorded,
  /// A task that cannot be reached counts as alive.
  kSilenceIsLife,
  /// What was done for an earlier chief counts for the present one.
  kEpochsAreIgnored,
};

/// What a schedule has shown.
struct SimulatedOutcome {
  /// The first invariant that did not hold, with the time; empty when all did.
  std::string violation;
  /// What happened, a line an event; only when it was asked for.
  std::string log;
  /// Whether the job ended well: all trained to the last step.
  bool ended_well = false;
  int64_t updates = 0;
};

/// Runs the schedule that follows from `seed` to its end. The invariants:
///   - an update is made of the gradients of its own step, each once, and follows the one before;
///   - all processes end, and so does the server's wait for them;
///   - who is waited for is alive, or is named;
///   - the job ends well only when every worker that lives has ended;
///   - nobody ends well before the last step of the training.
SimulatedOutcome RunSimulatedTraining(uint64_t seed, PlantedFault fault = PlantedFault::kNone,
                                      bool with_log = false);

}  // namespace tenon::testing
