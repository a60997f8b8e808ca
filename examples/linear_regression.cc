// SPDX-License-Identifier: Apache-2.0
//
// The smallest training there is: points near y = 3 x + 2, of which the program finds the 3 and
// the 2.
//
//   example_linear_regression
#include <iostream>

#include "tenon/tenon.h"

using namespace tenon;  // NOLINT: a program about Tenon

Status Train() {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  SetRandomSeed(1);
  const Output x = Placeholder(DType::kFloat, {-1}, {.name = "x"});
  const Output y = Placeholder(DType::kFloat, {-1}, {.name = "y"});
  const Variable slope("slope", 0.0f), intercept("intercept", 0.0f);
  const Output loss = losses::MeanSquaredError(y, slope * x + intercept);
  Node* const train = GradientDescent(0.1).Minimize(loss);
  Node* const init = GlobalVariablesInitializer();
  // The points, with some noise, are drawn by the graph too.
  const Output points = RandomUniform({200}, DType::kFloat);
  const Output values = 3 * points + 2 + 0.1f * RandomNormal({200});

  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph));
  TENON_RETURN_IF_ERROR(session->Run({}, {}, {init}).status());
  TENON_ASSIGN_OR_RETURN(const auto data, session->Run({}, {points, values}));
  for (int step = 0; step <= 1000; ++step) {
    TENON_ASSIGN_OR_RETURN(const auto now,
                           session->Run({{x, data[0]}, {y, data[1]}}, {loss}, {train}));
    if (step % 200 == 0) {
      std::cout << "step " << step << ", loss " << now[0].scalar<float>() << '\n';
    }
  }
  TENON_ASSIGN_OR_RETURN(const auto found, session->Run({}, {slope, intercept}));
  std::cout << "y = " << found[0].scalar<float>() << " x + " << found[1].scalar<float>() << '\n';
  return OkStatus();
}

int main() {
  const Status status = Train();
  if (!status.ok()) std::cerr << status << '\n';
  return status.ok() ? 0 : 1;
}
