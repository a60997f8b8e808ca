// SPDX-License-Identifier: Apache-2.0
#include "distributed/protocol/cluster_spec.h"

#include <algorithm>
#include <charconv>

namespace tenon {
namespace {

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool IsJobName(std::string_view name) {
  return !name.empty() && std::isalpha(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
         });
}

bool ParseInt(std::string_view text, int* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

/// host:port, with an IPv6 host in brackets.
bool IsAddress(std::string_view address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  return colon != std::string_view::npos && colon > 0 &&
         ParseInt(address.substr(colon + 1), &port) && port >= 0 && port <= 65535 &&
         address.find_first_of("=;,/@ \t\n") == std::string_view::npos;
}

/// Takes "[4]" off the front of "[4]host:5"; an IPv6 host in brackets is left alone.
bool TakeTaskNumber(std::string_view* address, int* task) {
  if (!address->starts_with('[')) return false;
  const size_t end = address->find(']');
  if (end == std::string_view::npos || !ParseInt(address->substr(1, end - 1), task)) return false;
  address->remove_prefix(end + 1);
  return true;
}

}  // namespace

std::string TaskName(std::string_view job, int task) {
  return StrCat("/job:", job, "/replica:0/task:", task);
}

StatusOr<ClusterSpec> ClusterSpec::Parse(std::string_view text) {
  ClusterSpec spec;
  for (const std::string_view part : Split(text, ';')) {
    if (part.empty()) continue;
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      return InvalidArgument("cannot read '", part, "' in cluster '", text,
                             "'; wanted JOB=host:port,host:port;JOB=...");
    }
    TENON_RETURN_IF_ERROR(
        spec.AddJob(std::string(part.substr(0, equals)), part.substr(equals + 1)));
  }
  return spec;
}

Status ClusterSpec::AddJob(const std::string& job, std::string_view addresses) {
  int task = 0;
  for (std::string_view address : Split(addresses, ',')) {
    TakeTaskNumber(&address, &task);
    TENON_RETURN_IF_ERROR(AddTask(job, task, std::string(address)));
    ++task;
  }
  return OkStatus();
}

Status ClusterSpec::AddTask(const std::string& job, int task, const std::string& address) {
  if (!IsJobName(job)) return InvalidArgument("'", job, "' is not a job name");
  if (task < 0) return InvalidArgument("task ", task, " of job '", job, "' is negative");
  if (!IsAddress(address)) {
    return InvalidArgument(
        "'", address, "' of task ", task, " of job '", job, "' is not an address; wanted host:port",
        address.find('=') == std::string::npos ? "" : ", and ';' before the next job");
  }
  for (const auto& [other_job, tasks] : jobs_) {
    for (const auto& [other_task, other_address] : tasks) {
      if (other_address == address) {
        return InvalidArgument("address ", address, " is that of ", TaskName(other_job, other_task),
                               " and of ", TaskName(job, task));
      }
    }
  }
  if (!jobs_[job].emplace(task, address).second) {
    return InvalidArgument("task ", task, " of job '", job, "' is given twice");
  }
  return OkStatus();
}

bool ClusterSpec::HasTask(const std::string& job, int task) const {
  const auto found = jobs_.find(job);
  return found != jobs_.end() && found->second.contains(task);
}

StatusOr<std::string> ClusterSpec::Address(const std::string& job, int task) const {
  if (HasTask(job, task)) return jobs_.at(job).at(task);
  return NotFound(TaskName(job, task), " is not in the cluster ", ToString());
}

std::vector<std::string> ClusterSpec::TaskNames() const {
  std::vector<std::string> names;
  for (const auto& [job, tasks] : jobs_) {
    for (const auto& [task, address] : tasks) names.push_back(TaskName(job, task));
  }
  return names;
}

int ClusterSpec::NumTasks(const std::string& job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? 0 : static_cast<int>(found->second.size());
}

std::string ClusterSpec::ToString() const {
  std::string out;
  for (const auto& [job, tasks] : jobs_) {
    StrAppend(&out, out.empty() ? "" : ";", job, "=");
    int expected = 0;
    const char* separator = "";
    for (const auto& [task, address] : tasks) {
      out += separator;
      if (task != expected) StrAppend(&out, "[", task, "]");
      out += address;
      expected = task + 1;
      separator = ",";
    }
  }
  return out;
}

StatusOr<std::string> AddressOfTarget(const std::string& target) {
  constexpr std::string_view kScheme = "grpc://";
  if (!target.starts_with(kScheme)) {
    const std::string address = target.substr(target.rfind('/') + 1);
    const bool is_near = IsAddress(address) && !address.starts_with("grpc:");
    return InvalidArgument("'", target, "' is not a target; wanted grpc://host:port",
                           is_near ? StrCat("; did you mean ", kScheme, address, "?") : "");
  }
  std::string address = target.substr(kScheme.size());
  if (!IsAddress(address)) {
    return InvalidArgument("'", target, "' names no host and port; wanted grpc://host:port");
  }
  return address;
}

}  // namespace tenon
