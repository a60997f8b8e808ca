// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace tenon {

/// The jobs of a cluster by the names that TensorFlow gives them.
inline constexpr char kParameterServerJob[] = "ps";
inline constexpr char kWorkerJob[] = "worker";
inline constexpr char kChiefJob[] = "chief";

/// The chief has this name in TensorFlow up to 1.13.
inline constexpr char kMasterJob[] = "master";
inline constexpr char kEvaluatorJob[] = "evaluator";

/// The work of a job's tasks: they keep variables; they train, the chief with what is done once as
/// well; or they follow the checkpoints of those that train, outside of the cluster.
enum class TaskRole { kParameterServer, kWorker, kChief, kEvaluator };

/// The role that a job's name says; nothing for any other name.
constexpr std::optional<TaskRole> RoleOfJob(std::string_view job) {
  if (job == kParameterServerJob) return TaskRole::kParameterServer;
  if (job == kWorkerJob) return TaskRole::kWorker;
  if (job == kChiefJob || job == kMasterJob) return TaskRole::kChief;
  if (job == kEvaluatorJob) return TaskRole::kEvaluator;
  return std::nullopt;
}

}  // namespace tenon
