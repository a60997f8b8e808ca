// SPDX-License-Identifier: Apache-2.0
#include "tools/learning_history.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "data/files/file.h"
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
  written_ = std::min(written_, points_.size());
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

LearningHistory::LearningHistory(std::string folder, int64_t step)
    : folder_(std::move(folder)), begin_(step) {
  if (folder_.empty()) return;
  std::vector<std::string> names;
  if (auto listed = ListFolder(folder_); listed.ok()) names = *std::move(listed);
  std::sort(names.begin(), names.end());  // by the second of their start
  for (const std::string& name : names) {
    if (name.starts_with("events.out.tfevents.")) ReadFile(JoinPath(folder_, name));
  }
  ForgetAfter(static_cast<double>(step));
  written_ = points_.size();
}

Status LearningHistory::Add(const LearningPoint& point) {
  Keep(point);
  if (folder_.empty()) return OkStatus();
  Status written = WriteMissing();
  // Nobody reads what comes after the part of a record: another file has the next points.
  if (!written.ok()) writer_ = nullptr;
  return written;
}

Status LearningHistory::WriteMissing() {
  if (writer_ == nullptr) {
    TENON_ASSIGN_OR_RETURN(writer_, EventWriter::Create(folder_));
  }
  if (!has_begun_) {
    TENON_RETURN_IF_ERROR(writer_->AddSessionLog(EventWriter::SessionChange::kStart, begin_));
    has_begun_ = true;
  }
  for (; written_ < points_.size(); ++written_) TENON_RETURN_IF_ERROR(Write(points_[written_]));
  return OkStatus();
}

Status LearningHistory::Write(const LearningPoint& point) {
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
