// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "runtime/session/session.h"
#include "train/glm/model/glm_model.h"
#include "train/glm/rows/table_tasks.h"

namespace tenon {

/// The state of FTRL for each coefficient: the coefficient, the sum of squared gradients, and the
/// sum of gradients that the steps so far do not account for. By part, as ops/glm/glm_batch.h deals
/// them.
struct StreamState {
  struct Part {
    Tensor weights, squares, linear;
  };
  std::vector<Part> parts;

  /// Coefficients of 0, in the order of parts; `squares` is the least sum of squares.
  static StreamState Zero(const GlmModel& model, int64_t num_parts, double squares);
  /// The coefficients by column of the model.
  std::vector<double> Coefficients(const GlmModel& model) const;
};

/// The numbers of FTRL's steps (McMahan et al. 2013, algorithm 1, whose beta is the root of the
/// least sum of squares).
struct StreamRates {
  double learning_rate = 0.1, l1 = 0, l2 = 0;
  double start = 0, scale = 1;  // of offset and response: GlmStreamOptions
  int64_t rows = 512;           // in a batch
  /// Steps of a task that one call of it makes.
  int64_t steps_of_call = 1;
};

/// The steps of FTRL on the tasks that have a table: each takes batches of its own rows, and gets
/// and updates the coefficients where these are, whatever other tasks do. Thread-safe.
class StreamSteps {
 public:
  struct Taken {
    int64_t read = 0, used = 0;  // rows
    double deviance = 0;         // of these before their step, as the rates scale the response
    bool ended = false;          // the lane has given all of its epoch
  };

  /// `devices` are those of the coefficients. The tasks must outlive this.
  static StatusOr<std::unique_ptr<StreamSteps>> Build(const GlmModel& model,
                                                      const StreamRates& rates,
                                                      const std::vector<std::string>& devices,
                                                      TableTasks* tasks);
  Status Assign(const StreamState& state);
  StatusOr<StreamState> Read();
  /// Begins an epoch of a task; `lanes` are those that it is to have, 0: as many as it has threads.
  /// The result is how many there are.
  StatusOr<int64_t> Open(size_t task, int64_t seed, int64_t lanes);
  StatusOr<Taken> Take(size_t task, int64_t lane);

 private:
  struct Part {
    Output handles[3], values[3], feeds[3];
    Node* assigns[3];
    std::string device;
  };
  struct Task {
    Output seed, lanes, size, lane, rows, last, deviance;
    std::vector<std::string> updates;
    std::unique_ptr<PreparedStep> step;
  };
  explicit StreamSteps(Session& session) : session_(session) {}
  void BuildPart(size_t part, const std::string& device, int64_t size);
  void BuildTask(const GlmDesign& design, const StreamRates& rates, const std::string& device,
                 const Output& table, const Output& design_text, const Output& coefficients);

  Session& session_;
  std::vector<Part> parts_;
  std::vector<Task> of_tasks_;
  Output design_, coefficients_;
  Tensor design_text_, coefficient_of_column_;
};

}  // namespace tenon
