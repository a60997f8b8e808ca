// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/strings.h"

// Errors are values: absl::Status and absl::StatusOr. A mistake of a user or a peer always becomes
// a Status, whatever the bytes were; TENON_CHECK is for broken invariants of our own and must not
// be reachable from input. Messages are lower case, say what was found and what was wanted; the
// layer that knows the context (node, device, file) prepends it once with Annotate().
//
//   if (a.rank() != 2) return InvalidArgument("a must be a matrix, found shape ", a.ToString());

namespace tenon {

using Status = absl::Status;
using StatusCode = absl::StatusCode;
template <typename T>
using StatusOr = absl::StatusOr<T>;

inline Status OkStatus() { return Status(); }

#define TENON_ERROR_FACTORY(NAME, CODE)               \
  template <typename... Args>                         \
  Status NAME(const Args&... args) {                  \
    return Status(StatusCode::CODE, StrCat(args...)); \
  }
TENON_ERROR_FACTORY(Aborted, kAborted)
TENON_ERROR_FACTORY(AlreadyExists, kAlreadyExists)
TENON_ERROR_FACTORY(Cancelled, kCancelled)
TENON_ERROR_FACTORY(DataLoss, kDataLoss)
TENON_ERROR_FACTORY(DeadlineExceeded, kDeadlineExceeded)
TENON_ERROR_FACTORY(FailedPrecondition, kFailedPrecondition)
TENON_ERROR_FACTORY(Internal, kInternal)
TENON_ERROR_FACTORY(InvalidArgument, kInvalidArgument)
TENON_ERROR_FACTORY(NotFound, kNotFound)
TENON_ERROR_FACTORY(OutOfRange, kOutOfRange)
TENON_ERROR_FACTORY(PermissionDenied, kPermissionDenied)
TENON_ERROR_FACTORY(ResourceExhausted, kResourceExhausted)
TENON_ERROR_FACTORY(Unavailable, kUnavailable)
TENON_ERROR_FACTORY(Unimplemented, kUnimplemented)
#undef TENON_ERROR_FACTORY

/// The message of `status` as a standard string_view; valid while `status` lives.
inline std::string_view Message(const Status& status) { return ToStd(status.message()); }

/// `status` with another message. The code and payloads are kept; OK stays OK.
Status WithMessage(const Status& status, std::string_view message);

/// `status` with `prefix` before its message; OK stays OK. The code and payloads are kept.
Status Annotate(const Status& status, std::string_view prefix);

/// `status` with `suffix` after its message; OK stays OK. The code and payloads are kept.
Status AppendToMessage(const Status& status, std::string_view suffix);

namespace status_internal {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              std::string_view message);
inline const Status& ToStatus(const Status& s) { return s; }
template <typename T>
const Status& ToStatus(const StatusOr<T>& s) {
  return s.status();
}
}  // namespace status_internal

}  // namespace tenon

#define TENON_CONCAT_INNER(a, b) a##b
#define TENON_CONCAT(a, b) TENON_CONCAT_INNER(a, b)

/// Returns the Status of `expr` from the enclosing function unless it is OK.
#define TENON_RETURN_IF_ERROR(expr)                                  \
  do {                                                               \
    if (auto tenon_status = (expr); !tenon_status.ok()) [[unlikely]] \
      return ::tenon::status_internal::ToStatus(tenon_status);       \
  } while (false)

/// `TENON_ASSIGN_OR_RETURN(auto x, F())`: x = the value of F(), or returns its Status.
#define TENON_ASSIGN_OR_RETURN(lhs, expr) \
  TENON_ASSIGN_OR_RETURN_IMPL(TENON_CONCAT(tenon_status_or_, __LINE__), lhs, expr)
#define TENON_ASSIGN_OR_RETURN_IMPL(var, lhs, expr) \
  auto var = (expr);                                \
  if (!var.ok()) [[unlikely]]                       \
    return var.status();                            \
  lhs = std::move(var).value()

/// Ends the process when an invariant of our own is broken; never reachable from outside input.
#define TENON_CHECK(condition, ...)                                                          \
  do {                                                                                       \
    if (!(condition)) [[unlikely]]                                                           \
      ::tenon::status_internal::CheckFailed(__FILE__, __LINE__, #condition,                  \
                                            ::tenon::StrCat("" __VA_OPT__(, ) __VA_ARGS__)); \
  } while (false)
