// SPDX-License-Identifier: Apache-2.0
#include "data/s3/s3_client.h"

#include <openssl/evp.h>

#include <algorithm>

#include "absl/time/time.h"
#include "data/http/url.h"
#include "data/s3/s3_error.h"

namespace tenon {
namespace {

constexpr size_t kMostThreads = 16;
constexpr auto kPatienceForCopies = std::chrono::seconds(300);

/// SHA-256 in hexadecimal digits.
std::string Digest(std::string_view data) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(data.data(), data.size(), digest, &size, EVP_sha256(), nullptr);
  std::string text;
  for (unsigned int i = 0; i < size; ++i) StrAppend(&text, absl::Hex(digest[i], absl::kZeroPad2));
  return text;
}

/// The header that has the server copy from `place`. There is none for a range beside it: libcurl
/// before 8.3 signs the two in the wrong order.
std::string CopySource(const S3Place& place) {
  return StrCat("x-amz-copy-source: /", place.bucket, "/", PercentEncodedPath(place.key));
}

}  // namespace

S3ObjectInfo InfoOf(const HttpResponse& response) {
  S3ObjectInfo info;
  info.size = -1;
  int64_t size = 0;
  if (absl::SimpleAtoi(response.Header("content-length"), &size)) info.size = size;
  info.etag = response.Header("etag");
  absl::Time time;
  std::string error;
  if (absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT", response.Header("last-modified"), &time,
                      &error)) {
    info.modified_at =
        std::chrono::time_point_cast<Clock::WallTime::duration>(absl::ToChronoTime(time));
  }
  return info;
}

S3Client::S3Client(S3Settings settings, AwsCredentialSource& credentials, Clock& clock,
                   RetryPolicy policy)
    : settings_(std::move(settings)),
      credentials_(credentials),
      clock_(clock),
      policy_(policy),
      http_({settings_.verify_certificates, settings_.ca_file}),
      workers_(kMostThreads) {}

StatusOr<HttpResponse> S3Client::Send(const S3Call& call, const std::atomic<bool>* cancelled) {
  const S3Place& about = call.about.bucket.empty() ? call.place : call.about;
  HttpRequest request;
  request.method = call.method;
  request.url = settings_.UrlOf(call.place);
  if (!call.query.empty()) StrAppend(&request.url, "?", QueryOf(call.query));
  request.body = call.body;
  request.silence_limit = call.silence_limit;
  // A connection of TLS keeps what is sent as it is; a plain one is checked by the signature.
  const bool is_secure = request.url.starts_with("https:");
  const std::string digest = is_secure ? "UNSIGNED-PAYLOAD" : Digest(call.body);
  Retries retries(policy_, clock_);
  bool renewed = false;
  while (true) {
    const auto credentials = credentials_.Get();
    if (!credentials.ok()) return Annotate(credentials.status(), StrCat("'", about.Path(), "'"));
    const AwsCredentials& who = **credentials;
    request.headers = call.headers;
    request.signature.reset();
    if (!who.anonymous()) {
      request.signature = {who.key_id, who.secret, settings_.region, "s3"};
      request.headers.push_back(StrCat("x-amz-content-sha256: ", digest));
      if (!who.token.empty()) {
        request.headers.push_back(StrCat("x-amz-security-token: ", who.token));
      }
    }
    StatusOr<HttpResponse> response = http_.Send(request, cancelled);
    S3Error error;
    if (response.ok()) {
      error = ErrorOf(*response);
      const auto& good = call.also_good;
      if (error.status == 0 || std::find(good.begin(), good.end(), error.status) != good.end()) {
        return response;
      }
      if (error.IsExpired() && !renewed) {
        renewed = true;
        credentials_.Forget(*credentials);
        continue;
      }
    }
    const bool transient = IsTransient(response) || error.IsTransient();
    if (transient && retries.Wait(response, cancelled)) continue;
    const std::string tries =
        retries.attempts() > 1 ? StrCat(", after ", retries.attempts(), " tries") : "";
    if (response.ok()) {
      return AppendToMessage(StatusOfS3(error, call.what, about, settings_, who), tries);
    }
    const Status& failed = response.status();
    const Status told(transient ? StatusCode::kUnavailable : failed.code(), failed.message());
    return AppendToMessage(Annotate(told, StrCat("cannot ", call.what, " '", about.Path(), "'")),
                           tries);
  }
}

StatusOr<S3ObjectInfo> S3Client::Head(const S3Place& place, std::string what) {
  const S3Call head{
      .method = "HEAD", .place = place, .what = std::move(what), .also_good = {301, 400, 403, 404}};
  TENON_ASSIGN_OR_RETURN(HttpResponse response, Send(head));
  if (response.status >= 300 && response.status != 404) {
    // An answer to HEAD has no body that would say why. That to GET has, and credentials that have
    // ended are renewed by it.
    const S3Call get{
        .place = place, .what = head.what, .headers = {"Range: bytes=0-0"}, .also_good = {416}};
    TENON_RETURN_IF_ERROR(Send(get).status());
    TENON_ASSIGN_OR_RETURN(response, Send(head));
  }
  if (response.status < 300) return InfoOf(response);
  const std::string_view reason = response.status == 404 ? ": there is no such object" : "";
  return Status(response.status == 404 ? StatusCode::kNotFound : StatusCode::kUnavailable,
                StrCat("cannot ", head.what, " '", place.Path(), "': ", response.status, reason));
}

StatusOr<S3Listing> S3Client::ListPage(const S3Place& prefix, std::string_view delimiter,
                                       const std::string& token, int most, std::string what) {
  S3Call call{.place = {prefix.bucket, ""}, .what = std::move(what), .about = prefix};
  while (call.about.key.ends_with('/')) call.about.key.pop_back();
  call.query = {{"list-type", "2"}, {"encoding-type", "url"}, {"max-keys", StrCat(most)}};
  if (!prefix.key.empty()) call.query.emplace_back("prefix", prefix.key);
  if (!delimiter.empty()) call.query.emplace_back("delimiter", delimiter);
  if (!token.empty()) call.query.emplace_back("continuation-token", token);
  TENON_ASSIGN_OR_RETURN(const HttpResponse response, Send(call));
  StatusOr<S3Listing> listing = ParseListing(response.body);
  if (!listing.ok()) {
    return Annotate(listing.status(), StrCat("cannot ", call.what, " '", call.about.Path(), "'"));
  }
  return listing;
}

StatusOr<std::vector<std::string>> S3Client::ListAll(const S3Place& prefix, std::string what) {
  std::vector<std::string> keys;
  std::string token;
  do {
    TENON_ASSIGN_OR_RETURN(S3Listing page, ListPage(prefix, "", token, 1000, what));
    keys.insert(keys.end(), page.keys.begin(), page.keys.end());
    token = std::move(page.next);
  } while (!token.empty());
  return keys;
}

Status S3Client::Copy(const S3Place& from, const S3Place& to) {
  const S3Call call{.method = "PUT",
                    .place = to,
                    .what = StrCat("copy '", from.Path(), "' to"),
                    .headers = {CopySource(from)},
                    .silence_limit = kPatienceForCopies};
  return Send(call).status();
}

StatusOr<std::string> S3Client::CopyPart(const S3Place& from, const S3Place& to,
                                         const std::string& upload, int number) {
  const S3Call call{.method = "PUT",
                    .place = to,
                    .what = StrCat("copy '", from.Path(), "' to"),
                    .query = {{"partNumber", StrCat(number)}, {"uploadId", upload}},
                    .headers = {CopySource(from)},
                    .silence_limit = kPatienceForCopies};
  TENON_ASSIGN_OR_RETURN(const HttpResponse response, Send(call));
  std::string etag = XmlText(response.body, "/CopyPartResult/ETag");
  if (!etag.empty()) return etag;
  return Unimplemented("cannot ", call.what, " '", to.Path(), "': ", settings_.EndpointText(),
                       " does not copy parts (UploadPartCopy)");
}

Status S3Client::Delete(const S3Place& place) {
  const S3Call call{.method = "DELETE", .place = place, .what = "remove", .also_good = {404}};
  TENON_ASSIGN_OR_RETURN(const HttpResponse response, Send(call));
  const S3Error error = ErrorOf(response);
  if (error.status == 0 || error.code != "NoSuchBucket") return OkStatus();
  return NotFound("cannot remove '", place.Path(), "': there is no bucket '", place.bucket, "'");
}

StatusOr<std::string> S3Client::BeginUpload(const S3Place& place) {
  const S3Call call{.method = "POST", .place = place, .what = "write", .query = {{"uploads", ""}}};
  TENON_ASSIGN_OR_RETURN(const HttpResponse response, Send(call));
  std::string upload = XmlText(response.body, "//UploadId");
  if (upload.empty()) {
    return DataLoss("cannot write '", place.Path(), "': the answer names no upload: '",
                    response.body.substr(0, 100), "'");
  }
  return upload;
}

Status S3Client::CompleteUpload(const S3Place& place, const std::string& upload,
                                const std::vector<std::string>& etags, int64_t size) {
  const std::string body = CompletionXml(etags);
  const S3Call call{.method = "POST",
                    .place = place,
                    .what = "write",
                    .query = {{"uploadId", upload}},
                    .headers = {"Content-Type: application/xml"},
                    .body = body,
                    .silence_limit = kPatienceForCopies,
                    .also_good = {404}};
  TENON_ASSIGN_OR_RETURN(const HttpResponse response, Send(call));
  if (response.status != 404) return OkStatus();
  // An answer that was lost leaves an upload that is complete, of which the server knows no more.
  const StatusOr<S3ObjectInfo> info = Head(place, "write");
  const std::string parts = StrCat("-", etags.size(), "\"");
  if (info.ok() && info->size == size && info->etag.ends_with(parts)) return OkStatus();
  return Aborted("cannot write '", place.Path(), "': the server has no such upload any more: ",
                 XmlText(response.body, "/Error/Message"));
}

void S3Client::AbortUpload(const S3Place& place, const std::string& upload) {
  const S3Call call{.method = "DELETE",
                    .place = place,
                    .what = "abort writing",
                    .query = {{"uploadId", upload}},
                    .also_good = {404}};
  Send(call).IgnoreError();
}

}  // namespace tenon
