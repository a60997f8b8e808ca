// SPDX-License-Identifier: Apache-2.0
// Writes a graph of learning rates, clipped tensors and averages to the file that it is given, and
// prints a label and a name for each. For training_aids_test.py, which has the same in TensorFlow.
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/operators.h"
#include "ops/state/state_ops.h"
#include "tests/interop/labelled_graph.h"
#include "train/optimizers/clipping.h"
#include "train/optimizers/learning_rate_schedules.h"
#include "train/optimizers/moving_averages.h"

namespace tenon {
namespace {

void Schedules() {
  const Output step = Placeholder(DType::kInt64, Shape(), {.name = "step"});
  Label("exponential", ExponentialDecay(0.1, step, 7, 0.9));
  Label("exponential_staircase", ExponentialDecay(0.1, step, 7, 0.9, {.staircase = true}));
  Label("natural_exp", NaturalExpDecay(0.1, step, 7, 0.5));
  Label("natural_exp_staircase", NaturalExpDecay(0.1, step, 7, 0.5, {.staircase = true}));
  Label("inverse_time", InverseTimeDecay(0.1, step, 7, 0.5));
  Label("inverse_time_staircase", InverseTimeDecay(0.1, step, 7, 0.5, {.staircase = true}));
  Label("polynomial", PolynomialDecay(0.1, step, 40, {.end_learning_rate = 0.01, .power = 2.0}));
  Label("polynomial_cycle",
        PolynomialDecay(0.1, step, 16, {.end_learning_rate = 0.01, .power = 0.5, .cycle = true}));
  Label("cosine", CosineDecay(0.1, step, 40, {.alpha = 0.2}));
  Label("cosine_restarts", CosineDecayRestarts(0.1, step, 11, {.m_mul = 0.8, .alpha = 0.1}));
  Label("cosine_same_restarts", CosineDecayRestarts(0.1, step, 11, {.t_mul = 1, .m_mul = 0.8}));
  Label("piecewise", PiecewiseConstant(step, {5, 20, 60}, {0.5, 0.3, 0.2, 0.1}));
  const Output rate = Const(0.1, {.dtype = DType::kDouble});
  Label("double", ExponentialDecay(rate, step, 7, 0.9));
}

void Clipped() {
  const Output x = Placeholder(DType::kFloat, {3, 4}, {.name = "x"});
  const Output y = Placeholder(DType::kFloat, {5}, {.name = "y"});
  const Output limit = Placeholder(DType::kFloat, Shape(), {.name = "limit"});
  Label("by_norm", ClipByNorm(x, limit));
  Label("by_norm_of_rows", ClipByNorm(x, limit, {.axes = {1}}));
  Label("by_average_norm", ClipByAverageNorm(x, 0.1));
  const auto clipped = ClipByGlobalNorm({Gradient(x), Gradient(), Gradient(y)}, limit);
  Label("global_norm", clipped.global_norm);
  Label("global_x", clipped.gradients[0].dense);
  Label("global_y", clipped.gradients[2].dense);
  Label("by_value", ClipByValue(Gradient(x), -0.5, 0.25).dense);
}

void Averages(bool resource) {
  const NameScope scope(resource ? "resource" : "ref");
  const Variable w("w", {1.0f, -2.0f}, {.resource = resource});
  const Variable b("b", 3.0f, {.resource = resource});
  const Variable step("step", 0.0f, {.trainable = false, .resource = resource});
  const Output factor = 0.5f * step;
  Node* change;
  {
    const ControlDependencies after({ChangeVariable(*FindVariable(w), "AssignAdd", w * factor),
                                     ChangeVariable(*FindVariable(b), "AssignAdd", factor)});
    change = ChangeVariable(*FindVariable(step), "AssignAdd", 1.0f);
  }
  const std::string kind = resource ? "resource_" : "ref_";
  ExponentialMovingAverage plain(0.9), counted(0.9, {.num_updates = step, .name = "Counted"});
  Node *updated, *updated_counted;
  {
    const ControlDependencies after({change});
    updated = resource ? plain.Apply({w, b}) : plain.Apply();
    updated_counted = counted.Apply({w});
  }
  const ControlDependencies after({updated, updated_counted});
  Label(kind + "train", NodeBuilder("NoOp", "train").Finish());
  Label(kind + "w", w.value());
  Label(kind + "w_average", plain.Average(w).value());
  Label(kind + "b_average", plain.Average(b).value());
  Label(kind + "w_counted", counted.Average(w).value());
  for (const auto& [name, variable] : counted.VariablesToRestore()) {
    Label(kind + "restore:" + name, variable);
  }
}

}  // namespace
}  // namespace tenon

int main(int, char** argv) {
  return tenon::WriteLabelledGraph(argv[1], [] {
    tenon::Schedules();
    tenon::Clipped();
    tenon::Averages(false);
    tenon::Averages(true);
    tenon::Label("init", tenon::GlobalVariablesInitializer());
  });
}
