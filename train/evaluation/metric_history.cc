// SPDX-License-Identifier: Apache-2.0
#include "train/evaluation/metric_history.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "data/files/file.h"
#include "data/files/path.h"
#include "data/records/event_file.h"
#include "proto/event.pb.h"

namespace tenon {
namespace {

constexpr std::string_view kEventFiles = "events.out.tfevents.";

Status AddValues(const std::string& path, const std::string& metric,
                 std::map<int64_t, double>* values) {
  TENON_ASSIGN_OR_RETURN(const auto reader, EventReader::Open(path));
  Event event;
  while (true) {
    const StatusOr<bool> more = reader->Read(&event);
    // The last record is incomplete while it is being written, and when its writer has died.
    if (more.status().code() == StatusCode::kDataLoss) return OkStatus();
    TENON_RETURN_IF_ERROR(more.status());
    if (!*more) return OkStatus();
    for (const Summary::Value& value : event.summary().value()) {
      if (value.tag() == metric && value.has_simple_value()) {
        (*values)[event.step()] = value.simple_value();
      }
    }
  }
}

}  // namespace

StatusOr<std::map<int64_t, double>> ReadMetric(const std::string& folder,
                                               const std::string& metric) {
  std::map<int64_t, double> values;
  if (!FileExists(folder)) return values;
  TENON_ASSIGN_OR_RETURN(std::vector<std::string> names, ListFolder(folder));
  // The names have the times of their making.
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (!name.starts_with(kEventFiles)) continue;
    const Status added = AddValues(JoinPath(folder, name), metric, &values);
    // A writer has made the file and not its first record yet.
    if (added.code() == StatusCode::kInvalidArgument) continue;
    TENON_RETURN_IF_ERROR(added);
  }
  return values;
}

int64_t BestStep(const std::map<int64_t, double>& values, Better better) {
  const auto is_worse = [better](const auto& a, const auto& b) {
    if (std::isnan(a.second) || std::isnan(b.second)) {
      return std::isnan(a.second) && !std::isnan(b.second);
    }
    return better == Better::kLarger ? a.second < b.second : a.second > b.second;
  };
  return std::max_element(values.begin(), values.end(), is_worse)->first;
}

}  // namespace tenon
