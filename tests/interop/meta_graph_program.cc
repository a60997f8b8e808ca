// SPDX-License-Identifier: Apache-2.0
// Trains for meta_graphs_test.py, with what INPUTS.npz has of each step, "x/STEP" and "y/STEP":
//   meta_graph_program begin PREFIX INPUTS.npz FIRST COUNT
//   meta_graph_program go_on PREFIX INPUTS.npz FIRST COUNT NEXT_PREFIX
// `begin` builds a network and saves it at PREFIX; `go_on` has nothing but PREFIX.meta and the
// checkpoint, and saves at NEXT_PREFIX. Both print the loss of each step.
#include <cstdio>

#include "data/arrays/npy.h"
#include "tenon/tenon.h"

namespace tenon {
namespace {

void BuildNetwork() {
  SetRandomSeed(4);
  const Output x = Placeholder(DType::kFloat, {-1, 3}, {.name = "x"});
  const Output y = Placeholder(DType::kFloat, {-1, 2}, {.name = "y"});
  Output h = Dense(8, {.activation = Tanh, .kernel_regularizer = L2Regularizer(0.001)})(x);
  h = BatchNormalization()(h, true);
  const Variable factor("factor", 0.5f, {.resource = true});
  h = WhileLoop(
      {0, h}, [](const auto& v) { return v[0] < 2; },
      [&](const auto& v) {
        const Output grown = Cond(
            v[0] < 1, [&] { return v[1] * factor.value(); }, [&] { return Tanh(v[1]); });
        return std::vector<Output>{v[0] + 1, grown};
      })[1];
  losses::MeanSquaredError(y, Dense(2)(h));
  const Output loss = Identity(losses::GetTotalLoss(), {.name = "loss"});
  Adam adam(ExponentialDecay(0.05, GlobalStep(), 4, 0.9));
  std::vector<GradientAndVariable> gradients = adam.ComputeGradients(loss);
  std::vector<Output> first = UpdateOps();
  first.push_back(loss);  // what it reads, the step changes, in TensorFlow in place
  const ControlDependencies after(first);
  for (GradientAndVariable& g : gradients) g.gradient.dense = Identity(g.gradient.dense);
  adam.ApplyGradients(gradients, {.global_step = GlobalStep(), .name = "train"});
}

Status Train(Session& session, const std::string& inputs, int first, int count) {
  TENON_ASSIGN_OR_RETURN(const NpzReader reader, NpzReader::Open(inputs));
  for (int step = first; step < first + count; ++step) {
    TENON_ASSIGN_OR_RETURN(const Tensor x, reader.Read(StrCat("x/", step)));
    TENON_ASSIGN_OR_RETURN(const Tensor y, reader.Read(StrCat("y/", step)));
    TENON_ASSIGN_OR_RETURN(const auto fetched,
                           session.Run({{"x", x}, {"y", y}}, {"loss"}, {"train"}));
    std::printf("%.9g\n", fetched[0].scalar<float>());
  }
  return OkStatus();
}

Status Begin(const std::string& prefix, const std::string& inputs, int first, int count) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  BuildNetwork();
  Saver saver;
  Node* const init = GlobalVariablesInitializer();
  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph));
  TENON_RETURN_IF_ERROR(session->Run({}, {}, {init}).status());
  TENON_RETURN_IF_ERROR(Train(*session, inputs, first, count));
  return saver.Save(*session, prefix).status();
}

Status GoOn(const std::string& prefix, const std::string& inputs, int first, int count,
            const std::string& next) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  TENON_ASSIGN_OR_RETURN(const auto saver, ImportMetaGraph(prefix + ".meta"));
  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph));
  TENON_RETURN_IF_ERROR(saver->Restore(*session, prefix));
  TENON_RETURN_IF_ERROR(Train(*session, inputs, first, count));
  TENON_ASSIGN_OR_RETURN(const auto step, session->Run({}, {GlobalStep()}));
  if (step[0].scalar<int64_t>() != first + count) {
    return Internal("the step is ", step[0].ToString(), ", wanted ", first + count);
  }
  return saver->Save(*session, next).status();
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  tenon::Status status = tenon::InvalidArgument("usage: begin|go_on PREFIX INPUTS FIRST COUNT ...");
  if (words.size() == 5 && words[0] == "begin") {
    status = tenon::Begin(words[1], words[2], std::stoi(words[3]), std::stoi(words[4]));
  } else if (words.size() == 6 && words[0] == "go_on") {
    status = tenon::GoOn(words[1], words[2], std::stoi(words[3]), std::stoi(words[4]), words[5]);
  }
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(tenon::Message(status)).c_str());
  return status.ok() ? 0 : 1;
}
