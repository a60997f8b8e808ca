// SPDX-License-Identifier: Apache-2.0
#include "core/base/status.h"

#include <cstdio>
#include <cstdlib>

namespace tenon {

Status WithMessage(const Status& status, std::string_view message) {
  if (status.ok()) return status;
  Status result(status.code(), ToAbsl(message));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { result.SetPayload(url, payload); });
  return result;
}

Status Annotate(const Status& status, std::string_view prefix) {
  if (status.ok()) return status;
  return WithMessage(status, StrCat(prefix, ": ", Message(status)));
}

Status AppendToMessage(const Status& status, std::string_view suffix) {
  if (status.ok()) return status;
  return WithMessage(status, StrCat(Message(status), suffix));
}

namespace status_internal {

void CheckFailed(const char* file, int line, const char* condition, std::string_view message) {
  std::fprintf(stderr, "%s:%d: check failed: %s %.*s\n", file, line, condition,
               static_cast<int>(message.size()), message.data());
  std::abort();
}

}  // namespace status_internal
}  // namespace tenon
