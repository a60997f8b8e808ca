// SPDX-License-Identifier: Apache-2.0
//
// GraphDefs from outside: parsed, imported, and a step run. The first byte says which sample
// graph's feeds, fetches and targets are used.
#include <google/protobuf/stubs/logging.h>

#include "core/memory/memory_limit.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/sample_graphs.h"

namespace tenon::testing {
namespace {

constexpr int64_t kGraphMemory = int64_t{512} << 20;

void FuzzGraph(absl::Span<const uint8_t> data) {
  google::protobuf::SetLogHandler(nullptr);
  SetCpuMemoryLimit(kGraphMemory);
  const std::vector<SampleGraph>& samples = SampleGraphs();
  if (data.empty()) return;
  const MutantSteps& steps = samples[data[0] % samples.size()].steps;
  GraphDef graph;
  data.remove_prefix(1);
  if (!graph.ParseFromArray(data.data(), static_cast<int>(data.size()))) return;
  const Status status = ImportAndRun(graph, steps);
  // A broken invariant of our own would be an Internal error.
  TENON_CHECK(status.code() != StatusCode::kInternal, status.ToString());
}

void MutateGraph(std::string* data, size_t max_size, uint64_t seed) {
  Random random(seed);
  if (data->empty()) data->push_back('\0');
  std::string bytes = data->substr(1);
  GraphDef graph;
  if (random.Chance(75) && graph.ParseFromString(bytes)) {
    MutateMessage(&graph, random);
    bytes = graph.SerializeAsString();
  } else if (random.Chance(50)) {
    MutateBytes(&bytes, random);
  } else {
    MutateAsLibFuzzer(&bytes, max_size - 1);
  }
  if (bytes.size() < max_size) *data = (*data)[0] + bytes;
}

std::vector<std::string> GraphSeeds() {
  std::vector<std::string> seeds;
  for (const SampleGraph& sample : SampleGraphs()) {
    seeds.push_back(static_cast<char>(seeds.size()) + sample.bytes);
  }
  return seeds;
}

const bool graph_registered = RegisterFuzzTarget(
    {.name = "graph", .run = FuzzGraph, .mutate = MutateGraph, .seeds = GraphSeeds});

}  // namespace
}  // namespace tenon::testing
