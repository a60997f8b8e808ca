// SPDX-License-Identifier: Apache-2.0
//
// Every op gives on a device with memory of its own what it gives on the CPU, bit by bit, where the
// device runs the CPU's kernel: what differs is memory, order and lifetime.
#include <gtest/gtest.h>

#include "ops/cuda/device_kind.h"
#include "ops/register.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/simulated_kernels.h"
#include "tests/testing/simulated_session.h"

namespace tenon::testing {
namespace {

/// The outputs of one op on the simulated device, its inputs fed.
StatusOr<std::vector<Tensor>> RunOnDevice(const OpRegistration& op,
                                          const std::vector<Tensor>& inputs, AttributeMap attrs) {
  InferAttributes(op.schema, inputs, &attrs);
  Graph graph(AllOps());
  std::vector<Endpoint> sources;
  Session::Feeds feeds;
  for (const Tensor& t : inputs) {
    const std::string name = StrCat("in", sources.size());
    TENON_ASSIGN_OR_RETURN(
        Node * source,
        graph.AddNode(name, "Placeholder", {{"dtype", t.dtype()}, {"shape", PartialShape()}}, {}));
    source->set_requested_device("/device:CPU:0");
    sources.push_back({source, 0});
    feeds.emplace_back(name, t);
  }
  TENON_ASSIGN_OR_RETURN(Node * node, graph.AddNode("op", op.schema.name, attrs, sources));
  node->set_requested_device("/device:GPU:0");
  std::vector<std::string> fetches;
  for (int i = 0; i < node->num_outputs(); ++i) fetches.push_back(StrCat("op:", i));
  TENON_ASSIGN_OR_RETURN(const auto session, MakeSimulatedSession(graph));
  return session->Run(feeds, fetches, {"op"});
}

/// What differs between the two, or "".
std::string Difference(const std::vector<Tensor>& found, const std::vector<Tensor>& wanted) {
  if (found.size() != wanted.size()) return StrCat(found.size(), " outputs, not ", wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const bool opaque =
        wanted[i].dtype() == DType::kResource || wanted[i].dtype() == DType::kVariant;
    if (opaque || found[i].Equals(wanted[i])) continue;
    return StrCat("output ", i, " is ", found[i].ToString(), ", on the CPU ", wanted[i].ToString());
  }
  return "";
}

/// Compares every `step`th op from `first` on, in all dtypes; how many cases there were.
int CompareOps(size_t first, size_t step) {
  int cases = 0;
  const std::vector<const OpRegistration*> ops = SimulatedOps().All();
  for (size_t i = first; i < ops.size(); i += step) {
    const OpRegistration& op = *ops[i];
    // The branch that is not taken cannot be fetched.
    if (op.schema.name == "Switch" || op.schema.name == "RefSwitch") continue;
    for (const OpExample& example : op.examples) {
      for (const AttributeMap& attrs : TypeChoices(op, example)) {
        if (op.FindKernel(kCuda, attrs) == nullptr) continue;
        const std::vector<Tensor> inputs = SampleInputs(op, example, attrs, 7);
        const OpResult wanted = RunOp(op.schema.name, inputs, attrs);
        const OpResult again = RunOp(op.schema.name, inputs, attrs);
        // Draws without a seed are others each time.
        if (!wanted.status.ok() || !Difference(again.outputs, wanted.outputs).empty()) continue;
        const auto found = RunOnDevice(op, inputs, attrs);
        EXPECT_TRUE(found.ok()) << op.schema.name << ": " << found.status();
        if (!found.ok()) continue;
        EXPECT_EQ(Difference(*found, wanted.outputs), "") << op.schema.name;
        ++cases;
      }
    }
  }
  return cases;
}

TEST(DeviceConformanceTest, OpsGiveWhatTheyGiveOnTheCpu) { EXPECT_GT(CompareOps(0, 2), 1000); }
TEST(DeviceConformanceTest, TheOtherOpsDoToo) { EXPECT_GT(CompareOps(1, 2), 1000); }

}  // namespace
}  // namespace tenon::testing
