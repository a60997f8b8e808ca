// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tenon {

/// The coefficients that a stream of rows left, and its account.
struct StreamFit {
  std::vector<double> coefficients;  // by column of the model, in units of its design
  int64_t epochs = 0, batch_rows = 0, seed = 0;
  double learning_rate = 0;
  int64_t rows_read = 0, rows_missed = 0;  // in all epochs
  int64_t rows_used = 0;
  double deviance = 0;  // of the rows of the last epoch, each before its step
  double seconds = 0;   // of the epochs
  std::vector<std::string> warnings;
};

/// FTRL-proximal in place of an exact fit: each row is used once an epoch, for a step of its
/// batch's coefficients, which have rates of their own (McMahan et al. 2013, "Ad click prediction:
/// a view from the trenches", algorithm 1).
struct StreamFitOptions {
  int64_t epochs = 1;
  int64_t batch_rows = 512;
  double learning_rate = 0.1;
  int64_t seed = 1;   // of the order of rows; below 0: that of the files
  int64_t lanes = 0;  // steps that a task makes at the same time; 0: as many as it has threads
  /// The CPU devices that have the coefficients; none: the first task's.
  std::vector<std::string> devices = {};
  /// Whether the task of a device is there, after a step of it has failed; null: a failure is one
  /// of the fit.
  std::function<bool(const std::string& device)> is_there = nullptr;
  /// Gets a line for people about what happens on the way. Called by one thread at a time.
  std::function<void(const std::string& line)> notice = nullptr;
  /// Called with the fit, once it is there.
  std::function<void(const StreamFit& fit)> ended = nullptr;
  /// A fit that is there already, with which to go on.
  std::shared_ptr<const StreamFit> fit = nullptr;
};

}  // namespace tenon
