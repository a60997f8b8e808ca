// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "runtime/session/session.h"

namespace tenon::testing {

/// One step of a random graph.
struct RandomStep {
  Session::Feeds feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  /// The step fetches a tensor without a value, which is an error; it is then the last.
  bool fails = false;
};

/// A graph and the steps to run on it, in order; the first initialises the variables.
struct RandomGraph {
  Graph graph;
  std::vector<RandomStep> steps;
};

struct RandomGraphOptions {
  /// Builds the bodies of while loops as often as they run, so that the graph has no loops; names
  /// and values of everything that steps use stay the same.
  bool unroll_loops = false;
};

/// A graph that follows from `seed` alone: elementwise ops, products, reductions, shapes, joins and
/// cuts, casts, control edges, variables of both kinds whose reads and updates are ordered,
/// conditionals, while loops, and gradients. It has gone through GraphDef and back. The names of
/// its variables contain the seed, so that graphs can share a server.
StatusOr<RandomGraph> MakeRandomGraph(uint64_t seed, const RandomGraphOptions& options = {});

/// Requests one of `devices` for each node that may be anywhere.
void AssignRandomDevices(Graph* graph, uint64_t seed, const std::vector<std::string>& devices);

/// A session that `make` gives of the first of so many parts of the graph, and that has been
/// extended by the others, with a step after each. The parts, read with `ops`, are about equally
/// large; there are fewer where loops do not allow a cut.
StatusOr<std::unique_ptr<Session>> MakeSessionInParts(
    const Graph& graph, int parts, const OpRegistry& ops,
    const std::function<StatusOr<std::unique_ptr<Session>>(const Graph&)>& make);

/// How a session is asked for a step.
enum class StepWay { kRun, kTraced, kAsync };

/// What the steps give, one after the other, each with an OK status or the error it ended with.
using StepResults = std::vector<StatusOr<std::vector<Tensor>>>;
StepResults RunSteps(const std::vector<RandomStep>& steps, Session& session,
                     StepWay way = StepWay::kRun);

/// "" when those steps fail that must and the others give the same, floats bit by bit except that
/// NaNs are equal. Otherwise what differs.
std::string Difference(const std::vector<RandomStep>& steps, const StepResults& found,
                       const StepResults& wanted);

/// The seeds of a differential test: those of TENON_SEED when the environment has it ("7", or
/// "1-5000"), so that a failure can be repeated, else `count` from 1 on.
std::vector<uint64_t> SeedsToTest(int count);

}  // namespace tenon::testing
