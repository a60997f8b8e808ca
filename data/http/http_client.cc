// SPDX-License-Identifier: Apache-2.0
#include "data/http/http_client.h"

#include <curl/curl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "core/base/mutex.h"

namespace tenon {
namespace {

/// Where systems keep the certificates that they trust; libcurl knows only that of the system it
/// was built on.
constexpr const char* kCaFiles[] = {"/etc/ssl/certs/ca-certificates.crt",
                                    "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
                                    "/etc/ssl/cert.pem"};

std::string SystemCaFile() {
  for (const char* const file : kCaFiles) {
    if (access(file, R_OK) == 0) return file;
  }
  return "";
}

std::string_view Trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  return text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
}

/// A request on its way, for libcurl's callbacks.
struct Transfer {
  std::string_view unsent;
  std::string_view body;
  HttpResponse response;
  const std::atomic<bool>* cancelled;
};

size_t WriteBody(char* data, size_t size, size_t count, void* transfer) {
  static_cast<Transfer*>(transfer)->response.body.append(data, size * count);
  return size * count;
}

size_t WriteHeader(char* data, size_t size, size_t count, void* transfer) {
  HttpResponse& response = static_cast<Transfer*>(transfer)->response;
  const std::string_view line(data, size * count);
  const size_t colon = line.find(':');
  if (line.starts_with("HTTP/")) {
    response.headers.clear();  // what came before was an interim response
  } else if (colon != std::string_view::npos) {
    std::string name(line.substr(0, colon));
    absl::AsciiStrToLower(&name);
    const std::string_view value = Trimmed(line.substr(colon + 1));
    if (name == "content-length") {
      // Memory is taken as bytes come, but for what a single response of ours can have.
      constexpr size_t kMostReserved = 64 << 20;
      size_t length = 0;
      if (absl::SimpleAtoi(std::string(value), &length) && length <= kMostReserved) {
        response.body.reserve(length);
      }
    }
    response.headers[name] = std::string(value);
  }
  return size * count;
}

size_t ReadBody(char* out, size_t size, size_t count, void* transfer) {
  std::string_view& unsent = static_cast<Transfer*>(transfer)->unsent;
  const size_t step = std::min(size * count, unsent.size());
  std::memcpy(out, unsent.data(), step);
  unsent.remove_prefix(step);
  return step;
}

/// libcurl begins again where a kept connection turns out to be closed.
int SeekBody(void* transfer, curl_off_t offset, int origin) {
  auto* const self = static_cast<Transfer*>(transfer);
  if (origin != SEEK_SET || offset < 0 || static_cast<size_t>(offset) > self->body.size()) {
    return CURL_SEEKFUNC_CANTSEEK;
  }
  self->unsent = self->body.substr(static_cast<size_t>(offset));
  return CURL_SEEKFUNC_OK;
}

int ShowProgress(void* transfer, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const std::atomic<bool>* const cancelled = static_cast<Transfer*>(transfer)->cancelled;
  return cancelled != nullptr && cancelled->load() ? 1 : 0;
}

Status StatusOfCurl(CURLcode code, const char* detail) {
  const std::string reason = *detail != '\0' ? detail : curl_easy_strerror(code);
  switch (code) {
    case CURLE_ABORTED_BY_CALLBACK:
      return Cancelled("the request was cancelled");
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
      return FailedPrecondition(reason);
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_WEIRD_SERVER_REPLY:
      return Unavailable(reason);
    default:
      return InvalidArgument(reason);
  }
}

}  // namespace

std::string HttpResponse::Header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

struct HttpClient::Connections {
  ~Connections() {
    MutexLock lock(mu);
    for (CURL* const idle : free) curl_easy_cleanup(idle);
  }
  CURL* Take() {
    {
      MutexLock lock(mu);
      if (!free.empty()) {
        CURL* const curl = free.back();
        free.pop_back();
        return curl;
      }
    }
    return curl_easy_init();
  }
  void Return(CURL* curl) {
    curl_easy_reset(curl);  // connections stay
    MutexLock lock(mu);
    free.push_back(curl);
  }

  Mutex mu;
  std::vector<CURL*> free ABSL_GUARDED_BY(mu);
};

HttpClient::HttpClient(HttpOptions options)
    : options_(std::move(options)), connections_(std::make_unique<Connections>()) {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)initialised;  // Send finds no handle where this failed
}

HttpClient::~HttpClient() = default;

StatusOr<HttpResponse> HttpClient::Send(const HttpRequest& request,
                                        const std::atomic<bool>* cancelled) {
  CURL* const curl = connections_->Take();
  if (curl == nullptr) return ResourceExhausted("libcurl has no memory for a request");
  Transfer transfer{request.body, request.body, {}, cancelled};
  char detail[CURL_ERROR_SIZE] = "";
  curl_slist* headers = nullptr;
  for (const std::string& header : request.headers) {
    headers = curl_slist_append(headers, header.c_str());
  }
  const auto set = [curl](CURLoption option, auto value) { curl_easy_setopt(curl, option, value); };
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  set(CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_ERRORBUFFER, detail);
  set(CURLOPT_CONNECTTIMEOUT, long{request.connect_limit.count()});
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, long{request.silence_limit.count()});
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, &ShowProgress);
  set(CURLOPT_XFERINFODATA, &transfer);
  set(CURLOPT_WRITEFUNCTION, &WriteBody);
  set(CURLOPT_WRITEDATA, &transfer);
  set(CURLOPT_HEADERFUNCTION, &WriteHeader);
  set(CURLOPT_HEADERDATA, &transfer);
  set(CURLOPT_BUFFERSIZE, 256L << 10);
  if (request.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else if (request.method == "PUT" || request.method == "POST") {
    set(CURLOPT_UPLOAD, 1L);
    set(CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
    set(CURLOPT_READFUNCTION, &ReadBody);
    set(CURLOPT_READDATA, &transfer);
    set(CURLOPT_SEEKFUNCTION, &SeekBody);
    set(CURLOPT_SEEKDATA, &transfer);
    set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  }
  const std::string ca_file = options_.ca_file.empty() ? SystemCaFile() : options_.ca_file;
  if (!ca_file.empty()) set(CURLOPT_CAINFO, ca_file.c_str());
  if (!options_.verify_certificates) {
    set(CURLOPT_SSL_VERIFYPEER, 0L);
    set(CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (request.signature) {
    const HttpSignature& by = *request.signature;
    set(CURLOPT_AWS_SIGV4, StrCat("aws:amz:", by.region, ":", by.service).c_str());
    set(CURLOPT_USERNAME, by.key_id.c_str());
    set(CURLOPT_PASSWORD, by.secret.c_str());
  }
  if (request.once) set(CURLOPT_FRESH_CONNECT, 1L);
  if (request.negotiate) {
    set(CURLOPT_HTTPAUTH, CURLAUTH_NEGOTIATE);
    set(CURLOPT_USERPWD, ":");  // the ticket's name
  }
  set(CURLOPT_HTTPHEADER, headers);
  const CURLcode code = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  transfer.response.status = static_cast<int>(status);
  curl_slist_free_all(headers);
  connections_->Return(curl);
  if (code != CURLE_OK) return StatusOfCurl(code, detail);
  return std::move(transfer.response);
}

}  // namespace tenon
