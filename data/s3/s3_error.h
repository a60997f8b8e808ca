// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"
#include "data/http/http_client.h"
#include "data/s3/aws_credentials.h"
#include "data/s3/s3_settings.h"

namespace tenon {

/// The error that a server answers with.
struct S3Error {
  int status = 0;             // 404
  std::string code, message;  // "NoSuchKey"; empty where the answer has no body
  std::string region;         // that the bucket is in, where the server says so
  std::string server_time;    // of the response, as it is written there

  /// Whether the same request may be answered another time.
  bool IsTransient() const;
  /// Whether it was signed with credentials that have ended.
  bool IsExpired() const;
};

/// The mistake that a response tells of: any status but 2xx, and an answer whose body is an error
/// though the status is 200, as copies and completions have it. Nothing (status 0) without one.
S3Error ErrorOf(const HttpResponse& response);

/// "cannot read 's3://b/k': 403 AccessDenied: Access Denied; <what may help>".
Status StatusOfS3(const S3Error& error, std::string_view what, const S3Place& place,
                  const S3Settings& settings, const AwsCredentials& credentials);

}  // namespace tenon
