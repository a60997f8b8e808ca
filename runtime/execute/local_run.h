// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/run.h"
#include "runtime/execute/local_rendezvous.h"
#include "runtime/execute/program.h"
#include "runtime/execute/trace.h"

namespace tenon {

/// A run that no other task takes part in, with all that dies with it.
struct LocalRun : ProgramRun {
  LocalRun(const Program& program, const RunSettings& wanted) {
    settings = wanted;
    cancellation = &own_cancellation;
    rendezvous = &own_rendezvous;
    resources = &own_resources;
    if (settings.trace) trace = &own_trace;
    if (program.has_transfers()) {
      own_cancellation.Register([this](const Status& why) { own_rendezvous.Abort(why); });
    }
  }
  LocalRun(const LocalRun&) = delete;
  LocalRun& operator=(const LocalRun&) = delete;

  LocalRendezvous own_rendezvous;
  ResourceStore own_resources;
  RunTrace own_trace;
  /// Must not be cancelled any more when the run goes.
  Cancellation own_cancellation;
};

}  // namespace tenon
