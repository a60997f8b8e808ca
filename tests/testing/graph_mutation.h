// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "proto/graph.pb.h"
#include "runtime/session/session.h"
#include "tests/testing/random_ops.h"

namespace tenon::testing {

/// One to four random changes of a graph: of attributes, dtypes, shapes, constants, inputs,
/// devices, names and ops, with sizes that cannot be had, cycles, and nodes left out or doubled.
void MutateMessage(GraphDef* graph, Random& random);

/// One to eight random changes of the bytes: flips, insertions, deletions, a cut.
void MutateBytes(std::string* bytes, Random& random);

/// What is run on a mutant.
struct MutantSteps {
  Session::Feeds feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  std::chrono::milliseconds timeout{500};
};

/// Imports the graph, runs its node "init" when it has one, and a step; the first error. Whatever
/// the graph is, this ends soon after the time limit and leaves the process alive.
Status ImportAndRun(const GraphDef& graph, const MutantSteps& steps);

}  // namespace tenon::testing
