// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/status.h"
#include "data/http/http_client.h"
#include "data/http/retries.h"
#include "data/http/workers.h"
#include "data/s3/aws_credentials.h"
#include "data/s3/s3_settings.h"
#include "data/s3/s3_xml.h"

namespace tenon {

/// Bytes of the largest object that servers copy by one request.
inline constexpr int64_t kLargestCopy = int64_t{5} << 30;

/// A request about a bucket or an object, which may be sent several times.
struct S3Call {
  std::string method = "GET";
  S3Place place;
  std::string what = "read";  // as errors call it
  S3Place about = {};         // what errors name; without a bucket: the place
  std::vector<std::pair<std::string, std::string>> query = {};
  std::vector<std::string> headers = {};  // "name: value"
  std::string_view body = {};             // kept by the caller
  /// How long none of the answer may come: copies take long.
  std::chrono::seconds silence_limit{30};
  /// Statuses other than 2xx that are answers and not errors.
  std::vector<int> also_good = {};
};

/// The size, version and age of an object, as the server tells them.
struct S3ObjectInfo {
  int64_t size = 0;
  std::string etag;
  Clock::WallTime modified_at;
};

/// Speaks to the servers of one S3Settings. Thread-safe.
class S3Client {
 public:
  /// `credentials` and `clock` outlive this.
  S3Client(S3Settings settings, AwsCredentialSource& credentials, Clock& clock,
           RetryPolicy policy = {});

  /// Signs and sends it, again after what passes: RetryPolicy. An error names bucket and key, the
  /// status, S3's code and message, and what may help. Cancelled soon after `cancelled` is true.
  StatusOr<HttpResponse> Send(const S3Call& call, const std::atomic<bool>* cancelled = nullptr);

  /// NotFound without such an object, be the key's bucket there or not.
  StatusOr<S3ObjectInfo> Head(const S3Place& place, std::string what = "look at");
  /// A page of the keys that begin with the place's key, which is the whole prefix.
  StatusOr<S3Listing> ListPage(const S3Place& prefix, std::string_view delimiter,
                               const std::string& token, int most, std::string what = "list");
  /// All keys that begin with it, in their order.
  StatusOr<std::vector<std::string>> ListAll(const S3Place& prefix, std::string what);
  /// Copies an object of at most kLargestCopy within the servers, as a whole.
  Status Copy(const S3Place& from, const S3Place& to);
  /// No error when there is none.
  Status Delete(const S3Place& place);
  /// The ETag of a part, a copy of an object of at most kLargestCopy.
  StatusOr<std::string> CopyPart(const S3Place& from, const S3Place& to, const std::string& upload,
                                 int number);
  StatusOr<std::string> BeginUpload(const S3Place& place);
  /// Makes the parts, of `size` bytes together, the object.
  Status CompleteUpload(const S3Place& place, const std::string& upload,
                        const std::vector<std::string>& etags, int64_t size);
  void AbortUpload(const S3Place& place, const std::string& upload);

  /// Runs what is sent beside its caller.
  Workers& workers() { return workers_; }
  Clock& clock() { return clock_; }
  const S3Settings& settings() const { return settings_; }

 private:
  const S3Settings settings_;
  AwsCredentialSource& credentials_;
  Clock& clock_;
  const RetryPolicy policy_;
  HttpClient http_;
  Workers workers_;
};

/// The information in the headers of an answer that has a whole object.
S3ObjectInfo InfoOf(const HttpResponse& response);

}  // namespace tenon
