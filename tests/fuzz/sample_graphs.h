// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/testing/graph_mutation.h"

namespace tenon::testing {

/// A graph that TensorFlow wrote, and a step of it.
struct SampleGraph {
  std::string bytes;
  GraphDef graph;
  MutantSteps steps;
};

/// The graphs of tests/data/graphs that can be run in process: cond_v1, while_v1, summary,
/// mnist_ref, mnist_resource. Made once; ends the process when a file is missing.
const std::vector<SampleGraph>& SampleGraphs();

}  // namespace tenon::testing
