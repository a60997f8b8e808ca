// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "tools/launch/task_plan.h"

// Jobs for Kubernetes, printed as manifests that a user looks at, changes and applies.

namespace tenon::tools {

struct KubernetesFlags {
  std::optional<std::string> name;  // of the job; none: nothing is to be printed
  std::string image;
  bool tfjob = false;

  /// --print_kubernetes, --image and --tfjob.
  void AddTo(CLI::App& launch);
};

/// What is to run.
struct KubernetesJob {
  std::string name, image;
  ClusterShape shape;
  std::vector<std::string> environment;  // "NAME=VALUE"
  std::optional<int> max_restarts;
};

/// The text of the YAML: a headless service, a secret with a random token unless the command has
/// flags of its own about security, and an indexed Job for each role, whose pods have the flags of
/// tasks and stable names. WrongUsage for a name, an image or words that Kubernetes cannot have.
StatusOr<std::string> KubernetesManifest(const KubernetesJob& job);

/// The same as a TFJob of Kubeflow's training operator, whose tasks get a TF_CONFIG from it.
StatusOr<std::string> TfJobManifest(const KubernetesJob& job);

}  // namespace tenon::tools
