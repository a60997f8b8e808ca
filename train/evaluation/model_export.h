// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "train/evaluation/evaluate_checkpoints.h"
#include "train/evaluation/metric_history.h"
#include "train/saver/saved_model.h"

namespace tenon {

/// Options of LatestExport and BestExport, by name.
struct ModelExportOptions {
  /// The models are folders in it, named by their steps, as servers of models want versions.
  std::string folder;
  std::map<std::string, ModelSignature> signatures;
  /// Says which variables a model has. Must outlive the exporter.
  Saver* saver = nullptr;
  /// The newest so many stay; 0: all.
  int keep = 5;
  ExportOptions options = {};
};

/// Exports each model that is evaluated (tf.estimator.LatestExporter). A version that is there
/// already is left as it is.
std::shared_ptr<ModelExporter> LatestExport(const ModelExportOptions& options);

/// Exports a model whose metric is better than in all evaluations before, also those of former
/// processes, which the event files in `eval_dir` have (tf.estimator.BestExporter).
/// InvalidArgument, naming those there are, when an evaluation lacks the metric.
std::shared_ptr<ModelExporter> BestExport(const ModelExportOptions& options,
                                          const std::string& eval_dir, const std::string& metric,
                                          Better better);

}  // namespace tenon
