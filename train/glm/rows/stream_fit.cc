// SPDX-License-Identifier: Apache-2.0
#include "train/glm/rows/stream_fit.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/strings.h"
#include "runtime/device/machine_clock.h"
#include "train/glm/rows/stream_steps.h"
#include "train/glm/text/number_text.h"
#include "train/one_line.h"

namespace tenon {
namespace {

/// Steps between processes cost messages of their own, which several steps share.
constexpr int64_t kStepsOfRemoteCall = 8;

std::string TaskOf(const std::string& device) { return device.substr(0, device.find("/device:")); }

/// The factors of steps: the objective is that of all epochs, for a mean weight of 1 and, in a
/// gaussian model, a response of deviation 1.
StreamRates RatesOf(const GlmModel& model, const GlmPenalty& penalty, const StreamRows& rows,
                    const StreamFitOptions& options) {
  StreamRates rates;
  rates.learning_rate = options.learning_rate;
  rates.rows = options.batch_rows;
  rates.start = rows.start_intercept;
  const GlmTotals& totals = rows.totals;
  if (model.design().family == GlmFamily::kGaussian) {
    // Without an intercept the columns have to make up for the mean too.
    const bool has_intercept = !model.columns().empty() && model.columns()[0].term < 0;
    const double mean = has_intercept ? totals.weighted_response / totals.weight : 0;
    const double variance = totals.response_square / totals.weight - mean * mean;
    if (variance > 0) rates.scale = std::sqrt(variance);
  }
  const double epochs = static_cast<double>(options.epochs);
  const double lambda = totals.weight * penalty.lambda;
  rates.l1 = epochs * lambda * penalty.alpha / rates.scale;
  // The op counts half of a square twice.
  const double ridge = penalty.ridge + lambda * (1 - penalty.alpha) / rates.scale;
  rates.l2 = epochs * ridge / 2;
  rates.steps_of_call = options.is_there == nullptr ? 1 : kStepsOfRemoteCall;
  return rates;
}

/// The threads of an epoch: one for each lane of each task.
class Epoch {
 public:
  Epoch(StreamSteps* steps, const std::vector<std::string>& devices,
        const std::vector<std::string>& coefficient_devices, const StreamFitOptions& options)
      : steps_(*steps),
        devices_(devices),
        coefficient_devices_(coefficient_devices),
        options_(options),
        lost_(devices.size()) {}

  /// The first failure that is not the loss of a task.
  Status Run(int64_t seed) {
    std::vector<std::jthread> opening, threads;
    std::vector<int64_t> lanes(devices_.size());
    for (size_t t = 0; t < devices_.size(); ++t) {
      opening.emplace_back([&, t] {
        const auto opened = steps_.Open(t, seed, options_.lanes);
        if (!opened.ok()) return Fail(t, opened.status());
        lanes[t] = *opened;
      });
    }
    opening.clear();
    for (size_t t = 0; t < devices_.size(); ++t) {
      for (int64_t lane = 0; lane < lanes[t]; ++lane) {
        threads.emplace_back([this, t, lane] { RunLane(t, lane); });
      }
    }
    threads.clear();
    MutexLock lock(mu_);
    return failure_;
  }

  StreamSteps::Taken taken() {
    MutexLock lock(mu_);
    return taken_;
  }
  /// By task.
  std::vector<bool> lost() {
    MutexLock lock(mu_);
    return lost_;
  }

 private:
  bool IsOver(size_t task) {
    MutexLock lock(mu_);
    return !failure_.ok() || lost_[task];
  }

  void RunLane(size_t task, int64_t lane) {
    while (!IsOver(task)) {
      const auto taken = steps_.Take(task, lane);
      if (!taken.ok()) return Fail(task, taken.status());
      if (!std::isfinite(taken->deviance)) {
        return Fail(task, OutOfRange("the steps diverge: the deviance is ", taken->deviance,
                                     "; a smaller --learning_rate may help"));
      }
      MutexLock lock(mu_);
      taken_.read += taken->read;
      taken_.used += taken->used;
      taken_.deviance += taken->deviance;
      if (taken->ended) return;
    }
  }

  void Fail(size_t task, const Status& status) {
    const Status failure = FailureOf(task, status);
    MutexLock lock(mu_);
    if (!failure.ok()) {
      failure_.Update(failure);
      return;
    }
    if (lost_[task]) return;
    lost_[task] = true;
    if (options_.notice) {
      options_.notice(
          StrCat(TaskOf(devices_[task]),
                 " is lost, and its rows of this epoch are missed: ", OneLine(Message(status))));
    }
  }

  /// OK when the failure of a step is the loss of its task.
  Status FailureOf(size_t task, const Status& status) const {
    const bool may_be_loss =
        status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kAborted;
    if (!may_be_loss || options_.is_there == nullptr) return status;
    for (const std::string& device : coefficient_devices_) {
      if (!options_.is_there(device)) return CoefficientsLost(device, status);
    }
    // A task that is there again has been started anew, without its rows.
    return task == 0 ? status : OkStatus();
  }

  StreamSteps& steps_;
  const std::vector<std::string>& devices_;
  const std::vector<std::string>& coefficient_devices_;
  const StreamFitOptions& options_;
  Mutex mu_;
  Status failure_ ABSL_GUARDED_BY(mu_);
  StreamSteps::Taken taken_ ABSL_GUARDED_BY(mu_);
  std::vector<bool> lost_ ABSL_GUARDED_BY(mu_);
};

/// The tasks that are left, with the state that there was.
StatusOr<std::unique_ptr<TableTasks>> Without(const std::vector<bool>& lost,
                                              const TableTasks& tasks) {
  std::vector<std::string> left;
  for (size_t t = 0; t < lost.size(); ++t) {
    if (!lost[t]) left.push_back(tasks.devices()[t]);
  }
  return tasks.DealTo(std::move(left));
}

}  // namespace

Status CoefficientsLost(const std::string& device, const Status& failure) {
  return DataLoss(TaskOf(device),
                  " is gone, and its part of the coefficients with it; begin again: ",
                  OneLine(Message(failure)));
}

StatusOr<StreamFit> FitByStream(const GlmModel& model, const GlmPenalty& penalty,
                                const StreamRows& rows, const StreamFitOptions& options,
                                const StreamProgress& progress,
                                std::unique_ptr<TableTasks>* tasks) {
  const Clock::Time begin = MachineClock().Now();
  const StreamRates rates = RatesOf(model, penalty, rows, options);
  const std::vector<std::string> coefficient_devices =
      options.devices.empty() ? std::vector{(*tasks)->devices()[0]} : options.devices;
  const double mean_weight = rows.totals.weight / rows.totals.num_rows;
  StreamState state = StreamState::Zero(model, static_cast<int64_t>(coefficient_devices.size()) + 1,
                                        mean_weight * mean_weight);
  StreamFit fit;
  fit.batch_rows = options.batch_rows;
  fit.seed = options.seed;
  fit.learning_rate = options.learning_rate;
  std::unique_ptr<StreamSteps> steps;
  for (int64_t e = 0; e < options.epochs; ++e) {
    if (steps == nullptr) {
      TENON_ASSIGN_OR_RETURN(steps,
                             StreamSteps::Build(model, rates, coefficient_devices, tasks->get()));
      TENON_RETURN_IF_ERROR(steps->Assign(state));
    }
    Epoch epoch(steps.get(), (*tasks)->devices(), coefficient_devices, options);
    // Orders of epochs have nothing in common, and one that is below 0 stays so.
    TENON_RETURN_IF_ERROR(epoch.Run(options.seed < 0 ? -1 : options.seed + e * 1'000'003));
    TENON_ASSIGN_OR_RETURN(state, steps->Read());
    const StreamSteps::Taken taken = epoch.taken();
    fit.epochs = e + 1;
    fit.rows_read += taken.read;
    fit.rows_used += taken.used;
    fit.deviance = taken.deviance * rates.scale * rates.scale;
    fit.coefficients = state.Coefficients(model);
    for (size_t j = 0; j < fit.coefficients.size(); ++j) {
      fit.coefficients[j] *= rates.scale;
      if (model.columns()[j].term < 0) fit.coefficients[j] += rates.start;
    }
    const int64_t missed = rows.all - taken.read;
    if (missed != 0) {
      fit.rows_missed += missed;
      fit.warnings.push_back(StrCat("epoch ", e + 1, " saw ", CountText(taken.read),
                                    " rows of a table of ", CountText(rows.all), ": those of ",
                                    "workers that were lost are missed"));
    }
    const std::vector<bool> lost = epoch.lost();
    if (std::find(lost.begin(), lost.end(), true) != lost.end()) {
      steps = nullptr;
      TENON_ASSIGN_OR_RETURN(*tasks, Without(lost, **tasks));
    } else if (missed != 0) {
      return DataLoss("an epoch saw ", taken.read, " rows of a table of ", rows.all);
    }
    if (progress) progress(e + 1, fit.deviance, fit.coefficients);
  }
  fit.seconds = std::chrono::duration<double>(MachineClock().Now() - begin).count();
  return fit;
}

}  // namespace tenon
