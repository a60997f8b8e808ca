// SPDX-License-Identifier: Apache-2.0
#include "data/hdfs/hdfs_error.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

namespace tenon {
namespace {

struct KnownException {
  std::string_view name;
  StatusCode code;
};

constexpr KnownException kKnownExceptions[] = {
    {"AccessControlException", StatusCode::kPermissionDenied},
    {"AuthorizationException", StatusCode::kPermissionDenied},
    {"DSQuotaExceededException", StatusCode::kResourceExhausted},
    {"FileAlreadyExistsException", StatusCode::kAlreadyExists},
    {"FileNotFoundException", StatusCode::kNotFound},
    {"IllegalArgumentException", StatusCode::kInvalidArgument},
    {"InvalidPathException", StatusCode::kInvalidArgument},
    {"InvalidToken", StatusCode::kPermissionDenied},
    {"NSQuotaExceededException", StatusCode::kResourceExhausted},
    {"ParentNotDirectoryException", StatusCode::kFailedPrecondition},
    {"PathComponentTooLongException", StatusCode::kInvalidArgument},
    {"PathIsNotDirectoryException", StatusCode::kFailedPrecondition},
    {"PathIsNotEmptyDirectoryException", StatusCode::kAlreadyExists},
    {"QuotaExceededException", StatusCode::kResourceExhausted},
    {"SecurityException", StatusCode::kPermissionDenied},
    {"UnsupportedOperationException", StatusCode::kUnimplemented},
};

StatusCode CodeOfHdfs(const HdfsError& error) {
  const auto* const known =
      std::find_if(std::begin(kKnownExceptions), std::end(kKnownExceptions),
                   [&](const KnownException& known) { return known.name == error.exception; });
  if (known != std::end(kKnownExceptions)) return known->code;
  if (error.IsTransient() || !error.exception.empty()) return StatusCode::kUnavailable;
  switch (error.status) {
    case 401:
    case 403:
      return StatusCode::kPermissionDenied;
    case 404:
      return StatusCode::kFailedPrecondition;  // the service, not a file, is missing
    default:
      return error.status < 500 ? StatusCode::kInvalidArgument : StatusCode::kUnavailable;
  }
}

/// Advice on the error, as the end of a sentence; empty where there is none.
std::string HintOfHdfs(const HdfsError& error, std::string_view server,
                       const HdfsSettings& settings) {
  if (error.status == 404 && error.exception.empty()) {
    return StrCat("; ", server, " serves no WebHDFS: wanted the address of a namenode's web ",
                  "interface (dfs.namenode.http-address), with dfs.webhdfs.enabled");
  }
  if (error.status == 401 && settings.token.empty()) {
    return StrCat("; ", server, " wants to know who asks: TENON_HDFS_TOKEN may have a delegation ",
                  "token, kinit gets a ticket of Kerberos");
  }
  const bool refused = error.status == 401 || CodeOfHdfs(error) == StatusCode::kPermissionDenied;
  if (!refused) return "";
  if (!settings.token.empty()) return "; the token is that of TENON_HDFS_TOKEN";
  return settings.user.empty()
             ? "; no user was named, which HADOOP_USER_NAME does"
             : StrCat("; the user is '", settings.user, "', which HADOOP_USER_NAME changes");
}

}  // namespace

bool HdfsError::IsStandby() const { return exception == "StandbyException"; }

bool HdfsError::IsBusy() const {
  return exception == "AlreadyBeingCreatedException" || exception == "RecoveryInProgressException";
}

bool HdfsError::IsTransient() const {
  return IsStandby() || exception == "RetriableException" || exception == "SafeModeException";
}

HdfsError HdfsErrorOf(const HttpResponse& response) {
  HdfsError error;
  if (response.status >= 200 && response.status < 300) return error;
  error.status = response.status;
  const auto json = nlohmann::json::parse(response.body, nullptr, /*allow_exceptions=*/false);
  const auto found = json.is_object() ? json.find("RemoteException") : json.end();
  if (!json.is_object() || found == json.end() || !found->is_object()) return error;
  const auto text = [&](const char* name) -> std::string {
    const auto it = found->find(name);
    return it != found->end() && it->is_string() ? it->get<std::string>() : "";
  };
  error.exception = text("exception");
  // A trace of the server's calls follows in some versions.
  error.message = text("message");
  error.message.resize(std::min(error.message.find('\n'), error.message.size()));
  return error;
}

Status StatusOfHdfs(const HdfsError& error, std::string_view what, const HdfsPlace& place,
                    std::string_view server, const HdfsSettings& settings) {
  const std::string exception = error.exception.empty() ? "" : StrCat(" ", error.exception);
  const std::string message = error.message.empty() ? "" : StrCat(": ", error.message);
  return Status(CodeOfHdfs(error), StrCat("cannot ", what, " '", place.Path(), "': ", error.status,
                                          exception, message, HintOfHdfs(error, server, settings)));
}

}  // namespace tenon
