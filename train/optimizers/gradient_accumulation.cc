// SPDX-License-Identifier: Apache-2.0
#include "train/optimizers/gradient_accumulation.h"

#include <algorithm>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/control_flow/flow.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/state/state_ops.h"

namespace tenon {
namespace {

constexpr std::string_view kCount = "accumulated_steps";

/// ScatterAdd or ScatterUpdate of the rows of a variable.
Node* ChangeRows(const VariableEntry& variable, std::string_view op, const Output& rows,
                 const Output& values) {
  return NodeBuilder(StrCat(variable.is_resource() ? "Resource" : "", op))
      .Input(Output(variable.ref))
      .Input(rows)
      .Input(values)
      .Finish();
}

Output Number(int64_t value) { return Const(value, {.dtype = DType::kInt64}); }

/// A vector of ones, one for each row.
Output OneEach(const Output& rows, DType dtype) {
  const Output one = Const(1, {.dtype = dtype});
  return Fill(Reshape(Size(rows), {1}), one);
}

}  // namespace

void GradientAccumulation::Prepare(const std::vector<GradientAndVariable>& gradients) {
  if (steps_ < 1) {
    CurrentBuilding().Fail(InvalidArgument(name(), ": it takes at least 1 step, found ", steps_),
                           std::source_location::current());
  }
  for (const GradientAndVariable& g : gradients) {
    if (!g.gradient.is_sparse()) continue;
    MakeSlot(g.variable, {"touched"}, {Output(g.variable.value).shape().dims()[0]});
  }
  OwnVariable(kCount, 0, gradients[0].variable, DType::kInt64);
  optimizer_.MakeVariables(gradients);
}

Node* GradientAccumulation::ApplyGradients(const std::vector<GradientAndVariable>& gradients,
                                           const ApplyGradientsOptions& options) {
  const CalledFrom caller(options.location);
  gradients_.clear();
  global_step_ = options.global_step;
  return Optimizer::ApplyGradients(gradients, {.name = options.name});
}

Node* GradientAccumulation::Apply(const Gradient& gradient, const VariableEntry& variable) {
  gradients_.push_back({gradient, variable});
  const VariableEntry& sum = SlotOf(variable, "accumulator");
  if (!gradient.is_sparse()) return ChangeVariable(sum, "AssignAdd", gradient.dense);
  const IndexedSlices& slices = gradient.slices;
  Node* const added = ChangeRows(sum, "ScatterAdd", slices.indices, slices.values);
  Node* const touched = ChangeRows(SlotOf(variable, "touched"), "ScatterUpdate", slices.indices,
                                   OneEach(slices.indices, slices.values.dtype()));
  const ControlDependencies after({added, touched});
  return NoOp();
}

Gradient GradientAccumulation::MeanOf(const GradientAndVariable& last) const {
  const Output sum = ReadVariable(SlotOf(last.variable, "accumulator"));
  if (!last.gradient.is_sparse()) return sum / steps_;
  const IndexedSlices& slices = last.gradient.slices;
  const Output touched = ReadVariable(SlotOf(last.variable, "touched"));
  const Output rows = Cast(Squeeze(Where(touched), {.squeeze_dims = {1}}), slices.indices.dtype());
  return IndexedSlices{GatherV2(sum, rows, 0) / steps_, rows, slices.dense_shape};
}

std::vector<Output> GradientAccumulation::Reset(const GradientAndVariable& mean) const {
  const VariableEntry& sum = SlotOf(mean.variable, "accumulator");
  if (!mean.gradient.is_sparse()) {
    return {ChangeVariable(sum, "Assign", ZerosLike(mean.gradient.dense))};
  }
  const IndexedSlices& slices = mean.gradient.slices;
  const Output one = OneEach(slices.indices, slices.values.dtype());
  return {ChangeRows(sum, "ScatterUpdate", slices.indices, ZerosLike(slices.values)),
          ChangeRows(SlotOf(mean.variable, "touched"), "ScatterUpdate", slices.indices,
                     ZerosLike(one))};
}

std::vector<Output> GradientAccumulation::Finish(std::vector<Output> updates) {
  const VariableEntry& count = OwnVariable(kCount);
  Output due;
  {
    const ControlDependencies after(updates);
    const ControlDependencies counted({ChangeVariable(count, "AssignAdd", Number(1))});
    due = Equal(ReadVariable(count), int64_t{steps_});
  }
  const auto step = [&]() -> std::vector<Output> {
    std::vector<GradientAndVariable> means;
    for (const GradientAndVariable& g : gradients_) {
      const ColocateWith beside(g.variable.ref);
      means.push_back({MeanOf(g), g.variable});
    }
    const ControlDependencies taken(
        {optimizer_.ApplyGradients(optimizer_.Combine(means), {.global_step = global_step_})});
    std::vector<Output> resets = {ChangeVariable(count, "Assign", Number(0))};
    for (const GradientAndVariable& mean : means) {
      const ColocateWith beside(mean.variable.ref);
      const std::vector<Output> nodes = Reset(mean);
      resets.insert(resets.end(), nodes.begin(), nodes.end());
    }
    const ControlDependencies reset(resets);
    return {NoOp()};
  };
  return Cond(due, step, [] { return std::vector<Output>{NoOp()}; });
}

std::vector<VariableEntry> GradientAccumulation::variables() const {
  std::vector<VariableEntry> all = Optimizer::variables();
  const std::vector<VariableEntry> others = optimizer_.variables();
  all.insert(all.end(), others.begin(), others.end());
  std::sort(all.begin(), all.end(), [](const VariableEntry& a, const VariableEntry& b) {
    return a.ref->name() < b.ref->name();
  });
  return all;
}

}  // namespace tenon
