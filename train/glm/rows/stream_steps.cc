// SPDX-License-Identifier: Apache-2.0
#include "train/glm/rows/stream_steps.h"

#include <algorithm>
#include <utility>

#include "core/base/strings.h"
#include "core/build/building.h"
#include "ops/array/array_ops.h"
#include "ops/glm/design_message.h"
#include "ops/glm/glm_batch.h"
#include "ops/glm/glm_ops.h"
#include "ops/math/math_ops.h"
#include "ops/state/state_ops.h"
#include "ops/training/training_ops.h"

namespace tenon {
namespace {

constexpr const char* kValueNames[] = {"weights", "squares", "linear"};
constexpr double kPower = -0.5;  // of the sum of squares in the rate of a coefficient

/// The coefficient of each column of the design.
CountedVector<int32_t> CoefficientOfColumn(const GlmModel& model) {
  const GlmSumsLayout layout(model.design(), GlmPass::kDeviance);
  CountedVector<int32_t> of_column(model.design().num_columns(), -1);
  int32_t j = 0;
  for (const GlmSums::Column& place : model.places()) {
    of_column[layout.first_column(place.group) + place.level] = j++;
  }
  return of_column;
}

std::vector<int64_t> SizesOfParts(const GlmModel& model, const GlmCoefficientParts& parts) {
  // A variable has an element, though none of the coefficients may be there.
  std::vector<int64_t> sizes(parts.num_parts(), 1);
  const auto count = static_cast<int64_t>(model.places().size());
  for (int64_t j = 0; j < count; ++j) {
    int64_t& size = sizes[parts.PartOf(j)];
    size = std::max(size, parts.PlaceOf(j) + 1);
  }
  return sizes;
}

Tensor& ValueOf(StreamState::Part* part, int which) {
  return which == 0 ? part->weights : which == 1 ? part->squares : part->linear;
}

}  // namespace

StreamState StreamState::Zero(const GlmModel& model, int64_t num_parts, double squares) {
  const GlmCoefficientParts parts(CoefficientOfColumn(model), num_parts);
  StreamState state;
  for (const int64_t size : SizesOfParts(model, parts)) {
    const std::vector<double> zeros(size, 0), least(size, squares);
    state.parts.push_back({Tensor::Vector<double>(zeros), Tensor::Vector<double>(least),
                           Tensor::Vector<double>(zeros)});
  }
  return state;
}

std::vector<double> StreamState::Coefficients(const GlmModel& model) const {
  const GlmCoefficientParts dealt(CoefficientOfColumn(model), static_cast<int64_t>(parts.size()));
  std::vector<double> coefficients(model.places().size());
  for (size_t j = 0; j < coefficients.size(); ++j) {
    const auto c = static_cast<int64_t>(j);
    coefficients[j] = parts[dealt.PartOf(c)].weights.data<double>()[dealt.PlaceOf(c)];
  }
  return coefficients;
}

void StreamSteps::BuildPart(size_t part, const std::string& device, int64_t size) {
  const DeviceScope scope(device);
  Part nodes;
  nodes.device = device;
  for (int i = 0; i < 3; ++i) {
    const std::string name = StrCat("stream/", kValueNames[i], "_", part);
    nodes.handles[i] = VarHandleOp(DType::kDouble, {size}, {.shared_name = name, .name = name});
    nodes.feeds[i] = Placeholder(DType::kDouble, {size}, {.name = name + "_value"});
    nodes.assigns[i] = AssignVariableOp(nodes.handles[i], nodes.feeds[i]);
    nodes.values[i] = ReadVariableOp(nodes.handles[i], DType::kDouble);
  }
  parts_.push_back(std::move(nodes));
}

void StreamSteps::BuildTask(const GlmDesign& design, const StreamRates& rates,
                            const std::string& device, const Output& table,
                            const Output& design_text, const Output& coefficients) {
  const DeviceScope scope(device);
  const auto num_parts = static_cast<int64_t>(parts_.size());
  Task task;
  task.seed = Placeholder(DType::kInt64, {}, {.name = "seed"});
  task.lanes = Placeholder(DType::kInt64, {}, {.name = "lanes"});
  task.lane = Placeholder(DType::kInt64, {}, {.name = "lane"});
  const Output stream = TenonGlmStream({.shared_name = "stream"});
  task.size = TenonGlmStreamOpen(stream, table, design_text, coefficients, task.seed, rates.rows,
                                 task.lanes, rates.start, rates.scale, num_parts);
  std::vector<Output> rows, deviances, before;
  for (int64_t s = 0; s < rates.steps_of_call; ++s) {
    const ControlDependencies in_turn(before);
    const auto batch = TenonGlmBatch(stream, task.lane, num_parts);
    std::vector<Output> weights;
    for (size_t p = 0; p < parts_.size(); ++p) {
      const DeviceScope there(parts_[p].device);
      weights.push_back(ResourceGather(parts_[p].handles[0], batch.columns[p], DType::kDouble));
    }
    const auto gradient = TenonGlmBatchGradient(
        weights, batch.places, batch.numbers, batch.response, batch.weight, batch.offset,
        std::string(NameOf(design.family)), std::string(NameOf(design.link)));
    for (size_t p = 0; p < parts_.size(); ++p) {
      const DeviceScope there(parts_[p].device);
      const auto& [weight, square, linear] = parts_[p].handles;
      // The intercept is free of penalties.
      Node* const update = ResourceSparseApplyFtrl(
          weight, square, linear, gradient.gradients[p], batch.columns[p], rates.learning_rate,
          p == 0 ? 0 : rates.l1, p == 0 ? 0 : rates.l2, kPower);
      task.updates.push_back(update->name());
      before.push_back(Output(update, 0));
    }
    rows.push_back(batch.rows);
    deviances.push_back(gradient.deviance);
  }
  task.last = rows.back();
  task.rows = rows.size() == 1 ? rows[0] : AddN(rows);
  task.deviance = rows.size() == 1 ? deviances[0] : AddN(deviances);
  of_tasks_.push_back(std::move(task));
}

StatusOr<std::unique_ptr<StreamSteps>> StreamSteps::Build(const GlmModel& model,
                                                          const StreamRates& rates,
                                                          const std::vector<std::string>& devices,
                                                          TableTasks* tasks) {
  auto steps = std::unique_ptr<StreamSteps>(new StreamSteps(tasks->session()));
  CountedVector<int32_t> of_column = CoefficientOfColumn(model);
  const GlmCoefficientParts parts(of_column, static_cast<int64_t>(devices.size()) + 1);
  const std::vector<int64_t> sizes = SizesOfParts(model, parts);
  TENON_RETURN_IF_ERROR(tasks->Extend([&] {
    for (size_t p = 0; p < sizes.size(); ++p) {
      steps->BuildPart(p, devices[p == 0 ? 0 : p - 1], sizes[p]);
    }
    {
      const DeviceScope first(tasks->devices()[0]);
      steps->design_ = Placeholder(DType::kString, {}, {.name = "stream/design"});
      steps->coefficients_ = Placeholder(DType::kInt32, {-1}, {.name = "stream/coefficients"});
    }
    const std::vector<Output> tables = tasks->tables();
    for (size_t t = 0; t < tables.size(); ++t) {
      steps->BuildTask(model.design(), rates, tasks->devices()[t], tables[t], steps->design_,
                       steps->coefficients_);
    }
  }));
  steps->design_text_ = Tensor::Scalar<TString>(SerializeDesign(model.design()));
  steps->coefficient_of_column_ =
      Tensor::Vector<int32_t>(std::vector<int32_t>(of_column.begin(), of_column.end()));
  for (Task& task : steps->of_tasks_) {
    TENON_ASSIGN_OR_RETURN(
        task.step, steps->session_.Prepare({task.lane}, {task.rows, task.last, task.deviance},
                                           StepTensors(task.updates)));
  }
  return steps;
}

Status StreamSteps::Assign(const StreamState& state) {
  StepFeeds::Pairs feeds;
  std::vector<std::string> targets;
  for (size_t p = 0; p < parts_.size(); ++p) {
    StreamState::Part part = state.parts[p];
    for (int i = 0; i < 3; ++i) {
      feeds.emplace_back(parts_[p].feeds[i].name(), ValueOf(&part, i));
      targets.push_back(parts_[p].assigns[i]->name());
    }
  }
  return session_.Run(feeds, {}, StepTensors(targets)).status();
}

StatusOr<StreamState> StreamSteps::Read() {
  std::vector<Output> fetches;
  for (const Part& part : parts_) fetches.insert(fetches.end(), part.values, part.values + 3);
  TENON_ASSIGN_OR_RETURN(std::vector<Tensor> fetched, session_.Run({}, fetches));
  StreamState state;
  for (size_t p = 0; p < parts_.size(); ++p) {
    state.parts.push_back({fetched[3 * p], fetched[3 * p + 1], fetched[3 * p + 2]});
  }
  return state;
}

StatusOr<int64_t> StreamSteps::Open(size_t task, int64_t seed, int64_t lanes) {
  const Task& nodes = of_tasks_[task];
  TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> size,
                         session_.Run({{nodes.seed, seed},
                                       {nodes.lanes, lanes},
                                       {design_, design_text_},
                                       {coefficients_, coefficient_of_column_}},
                                      {nodes.size}));
  return size[0].data<int64_t>()[0];
}

StatusOr<StreamSteps::Taken> StreamSteps::Take(size_t task, int64_t lane) {
  std::vector<Tensor> fetched;
  TENON_RETURN_IF_ERROR(of_tasks_[task].step->Run({Tensor::Scalar(lane)}, &fetched));
  const int64_t* const rows = fetched[0].data<int64_t>();
  return Taken{rows[0], rows[1], fetched[2].data<double>()[0], fetched[1].data<int64_t>()[0] == 0};
}

}  // namespace tenon
