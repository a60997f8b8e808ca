// SPDX-License-Identifier: Apache-2.0
#include "data/http/whole_output.h"

namespace tenon {
namespace {

constexpr auto kFlushPause = std::chrono::seconds(10);

}  // namespace

Status WholeOutput::Append(std::string_view data) {
  TENON_RETURN_IF_ERROR(Check());
  changed_ = changed_ || !data.empty();
  return Keep(Add(data));
}

Status WholeOutput::Flush() {
  TENON_RETURN_IF_ERROR(Check());
  const bool soon = put_at_ && clock_.Now() < *put_at_ + kFlushPause;
  return soon ? OkStatus() : Appear();
}

Status WholeOutput::Sync() {
  TENON_RETURN_IF_ERROR(Check());
  return Appear();
}

Status WholeOutput::Close() {
  if (closed_) return OkStatus();
  TENON_RETURN_IF_ERROR(Check());
  closed_ = true;
  return Appear();
}

Status WholeOutput::Check() const {
  if (closed_) return FailedPrecondition("'", path_, "' is closed");
  return status_;
}

Status WholeOutput::Keep(const Status& status) {
  status_.Update(status);
  return status;
}

Status WholeOutput::Appear() {
  if (!changed_) return OkStatus();
  TENON_RETURN_IF_ERROR(Keep(Put()));
  changed_ = false;
  put_at_ = clock_.Now();
  return OkStatus();
}

}  // namespace tenon
