// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace tenon {

/// The jobs of a cluster by the names that TensorFlow gives them.
inline constexpr char kParameterServerJob[] = "ps";
inline constexpr char kWorkerJob[] = "worker";
inline constexpr char kChiefJob[] = "chief";

/// The work of a job's tasks: they keep variables, or they train.
enum class TaskRole { kParameterServer, kWorker };

/// The role that a job's name says; nothing for any other name.
constexpr std::optional<TaskRole> RoleOfJob(std::string_view job) {
  if (job == kParameterServerJob) return TaskRole::kParameterServer;
  if (job == kWorkerJob) return TaskRole::kWorker;
  return std::nullopt;
}

}  // namespace tenon
