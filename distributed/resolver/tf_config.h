// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "distributed/protocol/cluster_spec.h"

namespace tenon {

/// The contents of a TF_CONFIG, the JSON text by which TensorFlow's Estimators, Kubeflow's TFJob
/// and cloud services tell a process which task of which cluster it is.
///
///   {"cluster": {"chief": ["a:1"], "ps": ["b:1"], "worker": ["c:1", "d:1"]},
///    "task": {"type": "worker", "index": 0}, "environment": "cloud"}
///
/// A job may be an object of addresses by number, of a cluster with gaps; "sparseCluster", as TFJob
/// writes it, is such a cluster. Other members ("environment", "model_dir", "rpc_layer", ...) mean
/// nothing here.
struct TfConfig {
  ClusterSpec cluster;  // the job "evaluator", which has no servers, left out
  std::optional<std::string> job;
  std::optional<int> task;
  int num_evaluators = 0;  // that the cluster lists
};

/// Reads it. `mistakes` gets a sentence for each thing that is wrong, each naming what was found
/// and what was wanted; the result has what could be read.
TfConfig ReadTfConfig(std::string_view text, std::vector<std::string>* mistakes);

}  // namespace tenon
