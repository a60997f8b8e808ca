// SPDX-License-Identifier: Apache-2.0
#include "data/s3/s3_input.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/numbers.h"
#include "data/http/block_input.h"

namespace tenon {
namespace {

constexpr int64_t kHeadBytes = 256 << 10;

constexpr int kRangeNotSatisfiable = 416;
constexpr int kPreconditionFailed = 412;

std::string RangeHeader(int64_t begin, int64_t end) {
  return StrCat("Range: bytes=", begin, "-", end - 1);
}

/// The size in "bytes 0-99/1234"; -1 without one.
int64_t SizeInRange(const std::string& content_range) {
  const size_t slash = content_range.rfind('/');
  int64_t size = -1;
  if (slash == std::string::npos || !absl::SimpleAtoi(content_range.substr(slash + 1), &size)) {
    return -1;
  }
  return size;
}

/// Bytes `begin` to `end` of the object, which must still be what it was.
StatusOr<std::string> FetchBytes(S3Client& client, const std::string& path, const S3Place& place,
                                 const S3ObjectInfo& info, int64_t begin, int64_t end,
                                 const std::atomic<bool>* cancelled) {
  S3Call call{.place = place, .headers = {RangeHeader(begin, end)}};
  if (!info.etag.empty()) call.headers.push_back(StrCat("If-Match: ", info.etag));
  call.also_good = {kPreconditionFailed, kRangeNotSatisfiable};
  TENON_ASSIGN_OR_RETURN(HttpResponse response, client.Send(call, cancelled));
  // Some servers do not look at If-Match.
  const std::string etag = response.Header("etag");
  const bool is_another = !info.etag.empty() && !etag.empty() && etag != info.etag;
  if (is_another || response.status == kPreconditionFailed ||
      response.status == kRangeNotSatisfiable) {
    return FailedPrecondition("cannot read '", path, "': it was replaced after it was opened");
  }
  const bool is_whole = response.Header("content-range").empty() &&
                        static_cast<int64_t>(response.body.size()) == info.size;
  if (!is_whole) return std::move(response.body);
  // A server without ranges.
  return response.body.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
}

}  // namespace

StatusOr<std::unique_ptr<InputFile>> OpenS3Input(S3Client& client, const std::string& path,
                                                 const S3Place& place) {
  const S3Call call{.place = place,
                    .what = "open",
                    .headers = {RangeHeader(0, kHeadBytes)},
                    .also_good = {kRangeNotSatisfiable}};
  TENON_ASSIGN_OR_RETURN(HttpResponse response, client.Send(call));
  S3ObjectInfo info = InfoOf(response);
  if (response.status == kRangeNotSatisfiable) {  // an empty object has no first byte
    info = {};
    response.body.clear();
  } else if (const std::string range = response.Header("content-range"); !range.empty()) {
    info.size = SizeInRange(range);
  } else {
    info.size = static_cast<int64_t>(response.body.size());
  }
  const auto found = static_cast<int64_t>(response.body.size());
  if (info.size < 0 || found != std::min(info.size, std::max(found, kHeadBytes))) {
    return DataLoss("cannot open '", path, "': found ", found, " bytes of '",
                    response.Header("content-range"), "'");
  }
  BlockInputOptions options{.path = path, .size = info.size, .head = std::move(response.body)};
  options.fetch = [&client, path, place, info](int64_t begin, int64_t end,
                                               const std::atomic<bool>* cancelled) {
    return FetchBytes(client, path, place, info, begin, end, cancelled);
  };
  return MakeBlockInput(std::move(options), client.workers());
}

}  // namespace tenon
