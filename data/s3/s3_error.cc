// SPDX-License-Identifier: Apache-2.0
#include "data/s3/s3_error.h"

#include <algorithm>
#include <iterator>

#include "data/s3/s3_xml.h"

namespace tenon {
namespace {

constexpr std::string_view kTransientCodes[] = {
    "InternalError",          "OperationAborted", "RequestTimeout",
    "ServiceUnavailable",     "SlowDown",         "Throttling",
    "ThrottlingException",    "RequestThrottled", "Busy",
    "RequestTimeoutException"};

bool IsAbout(const S3Error& error, std::string_view code) { return error.code == code; }

StatusCode CodeOf(const S3Error& error) {
  switch (error.status) {
    case 401:
    case 403:
      return StatusCode::kPermissionDenied;
    case 404:
      return StatusCode::kNotFound;
    case 412:
      return StatusCode::kFailedPrecondition;
    case 416:
      return StatusCode::kOutOfRange;
    case 501:
      return StatusCode::kUnimplemented;
    case 507:
      return StatusCode::kResourceExhausted;
    default:
      return error.status < 500 && !error.IsTransient() ? StatusCode::kInvalidArgument
                                                        : StatusCode::kUnavailable;
  }
}

/// Advice on the error, as the end of a sentence; empty where there is none.
std::string HintOf(const S3Error& error, const S3Place& place, const S3Settings& settings,
                   const AwsCredentials& credentials) {
  const std::string where = settings.EndpointText();
  if (IsAbout(error, "NoSuchBucket")) {
    return StrCat("; there is no bucket '", place.bucket, "' at ", where);
  }
  const bool elsewhere = error.status == 301 || error.status == 307 ||
                         IsAbout(error, "AuthorizationHeaderMalformed") ||
                         IsAbout(error, "IllegalLocationConstraintException");
  if (elsewhere && !error.region.empty()) {
    return StrCat("; the bucket is in another region than ", settings.region,
                  ": set AWS_REGION=", error.region);
  }
  if (elsewhere) {
    return StrCat("; the bucket may be in another region than ", settings.region,
                  ", which AWS_REGION sets");
  }
  if (IsAbout(error, "SignatureDoesNotMatch")) {
    return StrCat("; the secret key is not that of the key '", credentials.key_id, "', both from ",
                  credentials.source);
  }
  if (IsAbout(error, "InvalidAccessKeyId")) {
    return StrCat("; ", where, " does not know the key '", credentials.key_id, "' from ",
                  credentials.source);
  }
  if (IsAbout(error, "RequestTimeTooSkewed")) {
    return StrCat("; the clock of this machine is wrong: the server has ", error.server_time);
  }
  if (error.IsExpired()) return StrCat("; the credentials are from ", credentials.source);
  const bool refused = error.status == 401 || error.status == 403;
  if (credentials.anonymous() && (refused || error.status == 400)) {
    return StrCat("; the request was anonymous, since there are no credentials: ",
                  credentials.source);
  }
  if (!refused) return "";
  return StrCat("; the credentials are from ", credentials.source,
                "; who may not list a bucket is told this of a key that is not there, too");
}

}  // namespace

bool S3Error::IsTransient() const {
  return std::find(std::begin(kTransientCodes), std::end(kTransientCodes), code) !=
         std::end(kTransientCodes);
}

bool S3Error::IsExpired() const {
  return code == "ExpiredToken" || code == "ExpiredTokenException" ||
         code == "TokenRefreshRequired";
}

S3Error ErrorOf(const HttpResponse& response) {
  S3Error error;
  const bool good = response.status >= 200 && response.status < 300;
  const bool has_error = response.Header("content-type").find("xml") != std::string::npos
                             ? IsXmlOf(response.body, "Error")
                             : !good && IsXmlOf(response.body, "Error");
  if (good && !has_error) return error;
  error.status = response.status;
  error.region = response.Header("x-amz-bucket-region");
  error.server_time = response.Header("date");
  if (!has_error) return error;
  error.code = XmlText(response.body, "/Error/Code");
  error.message = XmlText(response.body, "/Error/Message");
  if (error.region.empty()) error.region = XmlText(response.body, "/Error/Region");
  return error;
}

Status StatusOfS3(const S3Error& error, std::string_view what, const S3Place& place,
                  const S3Settings& settings, const AwsCredentials& credentials) {
  const std::string code = error.code.empty() ? "" : StrCat(" ", error.code);
  const std::string message = error.message.empty() ? "" : StrCat(": ", error.message);
  return Status(CodeOf(error), StrCat("cannot ", what, " '", place.Path(), "': ", error.status,
                                      code, message, HintOf(error, place, settings, credentials)));
}

}  // namespace tenon
