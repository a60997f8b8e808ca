// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace tenon {

/// The jobs of a cluster by the names that TensorFlow gives them.
inline constexpr char kParameterServerJob[] = "ps";
inline constexpr char kWorkerJob[] = "worker";
inline constexpr char kChiefJob[] = "chief";

/// What the tasks of a job do: keep variables, train, or train and look after the session.
enum class TaskRole { kParameterServer, kWorker, kChief };

/// The role that a job's name says; nothing for any other name.
constexpr std::optional<TaskRole> RoleOfJob(std::string_view job) {
  if (job == kParameterServerJob) return TaskRole::kParameterServer;
  if (job == kWorkerJob) return TaskRole::kWorker;
  if (job == kChiefJob) return TaskRole::kChief;
  return std::nullopt;
}

}  // namespace tenon
