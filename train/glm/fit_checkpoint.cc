// SPDX-License-Identifier: Apache-2.0
#include "train/glm/fit_checkpoint.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/strings.h"
#include "data/files/file.h"
#include "ops/table/table_message.h"
#include "proto/table.pb.h"

namespace tenon {
namespace {

constexpr std::chrono::seconds kPause{1};
constexpr int kMostPart = 10;  // of the time, one part is for saving

std::string FitText(std::string_view fit, const std::vector<TableFile>& files) {
  table::FitCheckpoint message;
  message.set_fit(std::string(fit));
  message.set_table(SerializeTablePlan({files, {}, {}}));
  return message.SerializeAsString();
}

}  // namespace

FitCheckpoint::FitCheckpoint(std::string path, std::string_view fit,
                             const std::vector<TableFile>& files, Clock& clock)
    : path_(std::move(path)),
      fit_(FitText(fit, files)),
      clock_(clock),
      next_(clock.Now() + kPause) {}

StatusOr<std::optional<FitCheckpoint::Saved>> FitCheckpoint::Load() const {
  if (!FileExists(path_)) return std::nullopt;
  TENON_ASSIGN_OR_RETURN(const std::string text, ReadFileToString(path_));
  table::FitCheckpoint message;
  if (!message.ParseFromString(text)) {
    return DataLoss("'", path_, "' is no checkpoint of a fit, or damaged; remove it to begin anew");
  }
  Saved saved = {message.pass(), {}};
  std::vector<std::string> names;
  for (const auto& [name, value] : message.coefficients()) {
    names.push_back(name);
    saved.coefficients.values.push_back(value);
  }
  saved.coefficients.names = std::make_shared<const std::vector<std::string>>(std::move(names));
  message.clear_pass();
  message.clear_coefficients();
  if (message.SerializeAsString() != fit_) return std::nullopt;
  return saved;
}

Status FitCheckpoint::Save(int64_t pass, const GlmPoint& coefficients) {
  const Clock::Time begin = clock_.Now();
  if (begin < next_) return OkStatus();
  table::FitCheckpoint message;
  message.ParseFromString(fit_);
  message.set_pass(pass);
  for (size_t i = 0; i < coefficients.values.size(); ++i) {
    (*message.mutable_coefficients())[(*coefficients.names)[i]] = coefficients.values[i];
  }
  TENON_RETURN_IF_ERROR(WriteStringToFile(path_, message.SerializeAsString()));
  // Millions of coefficients must not have a fit do nothing else.
  const Clock::Time end = clock_.Now();
  next_ = end + std::max<Clock::Time::duration>(kPause, kMostPart * (end - begin));
  return OkStatus();
}

Status FitCheckpoint::Remove() const { return FileExists(path_) ? RemoveFile(path_) : OkStatus(); }

}  // namespace tenon
