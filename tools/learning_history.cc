// SPDX-License-Identifier: Apache-2.0
#include "tools/learning_history.h"

#include <algorithm>
#include <optional>

#include "data/file.h"
#include "proto/event.pb.h"

namespace tenon::tools {
namespace {

constexpr char kCostTag[] = "learning_curve/cost";
constexpr char kAccuracyTag[] = "learning_curve/validation_accuracy";

std::optional<LearningPoint> PointOf(const Event& event) {
  LearningPoint point{.step = static_cast<double>(event.step())};
  int found = 0;
  for (const Summary::Value& value : event.summary().value()) {
    if (value.tag() != kCostTag && value.tag() != kAccuracyTag) continue;
    (value.tag() == kCostTag ? point.loss : point.accuracy) = value.simple_value();
    ++found;
  }
  return found == 2 ? std::optional(point) : std::nullopt;
}

}  // namespace

void LearningHistory::ForgetAfter(double step) {
  std::erase_if(points_, [=](const LearningPoint& p) { return p.step > step; });
}

void LearningHistory::Keep(const LearningPoint& point) {
  ForgetAfter(point.step - 1);
  points_.push_back(point);
}

void LearningHistory::ReadFile(const std::string& path) {
  const auto reader = EventReader::Open(path);
  if (!reader.ok()) return;
  while (true) {
    Event event;
    const auto found = (*reader)->Read(&event);
    if (!found.ok() || !*found) return;
    if (event.session_log().status() == SessionLog::START) {
      ForgetAfter(static_cast<double>(event.step()));
    }
    if (const auto point = PointOf(event)) Keep(*point);
  }
}

StatusOr<std::unique_ptr<LearningHistory>> LearningHistory::Open(const std::string& folder,
                                                                 int64_t step) {
  auto history = std::make_unique<LearningHistory>();
  if (folder.empty()) return history;
  std::vector<std::string> names;
  if (auto listed = ListFolder(folder); listed.ok()) names = *std::move(listed);
  std::sort(names.begin(), names.end());  // by the second of their start
  for (const std::string& name : names) {
    if (name.starts_with("events.out.tfevents.")) history->ReadFile(JoinPath(folder, name));
  }
  history->ForgetAfter(static_cast<double>(step));
  TENON_ASSIGN_OR_RETURN(history->writer_, EventWriter::Create(folder));
  TENON_RETURN_IF_ERROR(history->writer_->AddSessionLog(EventWriter::SessionChange::kStart, step));
  return history;
}

Status LearningHistory::Add(const LearningPoint& point) {
  Keep(point);
  if (writer_ == nullptr) return OkStatus();
  Summary summary;
  for (const auto& [tag, value] :
       {std::pair(kCostTag, point.loss), std::pair(kAccuracyTag, point.accuracy)}) {
    Summary::Value* const entry = summary.add_value();
    entry->set_tag(tag);
    entry->set_simple_value(static_cast<float>(value));
  }
  return writer_->AddSummary(summary.SerializeAsString(), static_cast<int64_t>(point.step));
}

}  // namespace tenon::tools
