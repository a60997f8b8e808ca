// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/sample_graphs.h"

#include <fstream>
#include <sstream>

#include "data/arrays/npy.h"

namespace tenon::testing {
namespace {

using FeedKeys = std::vector<std::pair<std::string, std::string>>;

SampleGraph LoadSample(const std::string& name, const FeedKeys& feeds,
                       std::vector<std::string> fetches, std::vector<std::string> targets = {}) {
  const std::string path = StrCat("tests/data/graphs/", name);
  std::ifstream file(path + ".pb", std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  SampleGraph sample;
  sample.bytes = content.str();
  TENON_CHECK(!sample.bytes.empty() && sample.graph.ParseFromString(sample.bytes), path);
  const auto values = NpzReader::Open(path + ".npz");
  TENON_CHECK(values.ok(), path);
  for (const auto& [tensor, key] : feeds) {
    sample.steps.feeds.emplace_back(tensor, *values->Read(key));
  }
  sample.steps.fetches = std::move(fetches);
  sample.steps.targets = std::move(targets);
  return sample;
}

}  // namespace

const std::vector<SampleGraph>& SampleGraphs() {
  static const auto* const samples = new std::vector<SampleGraph>{
      LoadSample("cond_v1", {{"p:0", "p0"}, {"x:0", "x0"}}, {"result:0", "grad:0"}),
      LoadSample("while_v1", {{"x:0", "x0"}, {"n:0", "n0"}},
                 {"count:0", "result:0", "grad_x:0", "squares:0"}),
      LoadSample("summary", {{"v:0", "v"}}, {"merged:0"}),
      LoadSample("mnist_ref", {{"x:0", "x"}, {"y_:0", "y_"}}, {"loss:0"}, {"train"}),
      LoadSample("mnist_resource", {{"x:0", "x"}, {"y_:0", "y_"}}, {"loss:0"}, {"train"})};
  return *samples;
}

}  // namespace tenon::testing
