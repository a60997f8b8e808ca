// SPDX-License-Identifier: Apache-2.0
#include "data/hdfs/hdfs_client.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "data/files/path.h"
#include "data/http/url.h"

namespace tenon {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostThreads = 16;
/// A writer that is gone keeps its file for a minute; pauses of up to 10 s outlast that.
constexpr int kTriesForBusyFiles = 20;
/// A datanode that has much to do begins with what it got before a connection broke within half of
/// this.
constexpr auto kLateness = std::chrono::seconds(3);

RetryPolicy PatientPolicy(RetryPolicy policy) {
  policy.attempts = std::max(policy.attempts, kTriesForBusyFiles);
  return policy;
}

bool IsRedirection(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/// "http://host:port" of an address.
std::string ServerOf(const std::string& url) {
  const size_t mark = url.find("://");
  return url.substr(0, mark == std::string::npos ? 0 : url.find('/', mark + 3));
}

/// A value in the answer's JSON; null without one.
Json ValueIn(const HttpResponse& response, const std::string& pointer) {
  const Json json = Json::parse(response.body, nullptr, /*allow_exceptions=*/false);
  const Json::json_pointer place(pointer);
  return !json.is_discarded() && json.contains(place) ? json.at(place) : Json();
}

int64_t NumberIn(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

std::string TextIn(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

bool WantsKerberos(const StatusOr<HttpResponse>& response) {
  return response.ok() && response->status == 401 &&
         absl::StartsWithIgnoreCase(response->Header("www-authenticate"), "negotiate");
}

Status StrangeAnswer(const HdfsCall& call, const HttpResponse& response) {
  return DataLoss("cannot ", call.what, " '", call.place.Path(), "': the answer to ", call.op,
                  " has not what was wanted, found '", response.body.substr(0, 100), "'");
}

}  // namespace

HdfsClient::HdfsClient(HdfsSettings settings, Clock& clock, RetryPolicy policy)
    : settings_(std::move(settings)),
      clock_(clock),
      policy_(policy),
      http_({.ca_file = settings_.ca_file}),
      workers_(kMostThreads) {}

std::string HdfsClient::UrlOf(const HdfsCall& call, const std::string& server,
                              bool negotiate) const {
  auto query = call.query;
  query.emplace_back("op", call.op);
  if (!settings_.token.empty()) {
    query.emplace_back("delegation", settings_.token);
  } else if (!settings_.user.empty() && !negotiate) {  // a ticket has a name of its own
    query.emplace_back("user.name", settings_.user);
  }
  return StrCat(server, "/webhdfs/v1", PercentEncodedPath(call.place.path), "?", QueryOf(query));
}

StatusOr<HttpResponse> HdfsClient::SendTo(const std::string& url, const HdfsCall& call,
                                          std::string_view content, bool negotiate,
                                          const std::atomic<bool>* cancelled) {
  HttpRequest request;
  request.method = call.method;
  request.url = url;
  request.body = content;
  if (call.has_content) request.headers = {"Content-Type: application/octet-stream"};
  request.negotiate = negotiate;
  request.once = call.method != "GET";
  return http_.Send(request, cancelled);
}

HdfsClient::Answer HdfsClient::Try(const HdfsCall& call, const std::atomic<bool>* cancelled) {
  const std::vector<std::string> namenodes = settings_.NamenodesOf(call.place);
  Answer answer{HttpResponse{}, {}, namenodes[active_ % namenodes.size()], false};
  const bool negotiates = negotiates_;
  std::string url = UrlOf(call, answer.server, negotiates);
  answer.response = SendTo(url, call, "", negotiates, cancelled);
  if (!negotiates && WantsKerberos(answer.response)) {
    negotiates_ = true;
    url = UrlOf(call, answer.server, true);
    answer.response = SendTo(url, call, "", true, cancelled);
  }
  if (answer.response.ok() && IsRedirection(answer.response->status)) {
    const std::string location = answer.response->Header("location");
    if (url.starts_with("https:") && !location.starts_with("https:")) {
      answer.response = InvalidArgument(answer.server, " sends from HTTPS to '", ServerOf(location),
                                        "', which is none");
      return answer;
    }
    answer.was_sent = call.has_content;
    // A namenode puts into the address who asks; other servers of the protocol may ask again.
    answer.response = SendTo(location, call, call.content, false, cancelled);
    if (WantsKerberos(answer.response)) {
      answer.response = SendTo(location, call, call.content, true, cancelled);
    }
    if (!answer.response.ok()) {
      answer.response = Annotate(
          answer.response.status(),
          StrCat("the datanode ", ServerOf(location), ", to which ", answer.server, " sends"));
    }
    answer.server = ServerOf(location);
  } else if (call.has_content && answer.response.ok() && answer.response->status < 300) {
    answer.response = InvalidArgument(answer.server, " answered ", call.op, " by ",
                                      answer.response->status, " and names no datanode");
  }
  if (answer.response.ok()) answer.error = HdfsErrorOf(*answer.response);
  return answer;
}

bool HdfsClient::IsWorthWaiting(const Answer& answer, const HdfsCall& call, Retries& retries,
                                const std::atomic<bool>* cancelled) {
  const bool transient = IsTransient(answer.response) || answer.error.IsTransient();
  if (!transient) return false;
  const size_t count = settings_.NamenodesOf(call.place).size();
  const bool unreachable = answer.response.status().code() == StatusCode::kFailedPrecondition;
  if (count > 1 && (unreachable || answer.error.IsStandby())) {
    ++active_;
  }
  return retries.Wait(answer.response, cancelled);
}

Status HdfsClient::StatusOf(const Answer& answer, const HdfsCall& call,
                            const Retries& retries) const {
  const HdfsPlace& about = call.about.scheme.empty() ? call.place : call.about;
  const std::string tries =
      retries.attempts() > 1 ? StrCat(", after ", retries.attempts(), " tries") : "";
  if (answer.response.ok()) {
    return AppendToMessage(StatusOfHdfs(answer.error, call.what, about, answer.server, settings_),
                           tries);
  }
  const Status& failed = answer.response.status();
  const Status told(IsTransient(answer.response) ? StatusCode::kUnavailable : failed.code(),
                    failed.message());
  return AppendToMessage(Annotate(told, StrCat("cannot ", call.what, " '", about.Path(), "'")),
                         tries);
}

StatusOr<HttpResponse> HdfsClient::Send(const HdfsCall& call, const std::atomic<bool>* cancelled) {
  Retries retries(policy_, clock_);
  while (true) {
    Answer answer = Try(call, cancelled);
    if (answer.good()) return std::move(answer.response);
    if (!IsWorthWaiting(answer, call, retries, cancelled)) return StatusOf(answer, call, retries);
  }
}

StatusOr<HdfsFileInfo> HdfsClient::Stat(const HdfsPlace& place, std::string what) {
  const HdfsCall call{.op = "GETFILESTATUS", .place = place, .what = std::move(what)};
  TENON_ASSIGN_OR_RETURN(const HttpResponse response, Send(call));
  const Json status = ValueIn(response, "/FileStatus");
  const std::string type = status.is_object() ? TextIn(status, "type") : "";
  if (type != "FILE" && type != "DIRECTORY") return StrangeAnswer(call, response);
  HdfsFileInfo info;
  info.is_folder = type == "DIRECTORY";
  info.size = std::max<int64_t>(NumberIn(status, "length"), 0);
  info.id = NumberIn(status, "fileId");
  info.modified_at = Clock::WallTime(std::chrono::duration_cast<Clock::WallTime::duration>(
      std::chrono::milliseconds(NumberIn(status, "modificationTime"))));
  return info;
}

StatusOr<std::string> HdfsClient::Read(const HdfsPlace& place, const HdfsPlace& about,
                                       int64_t begin, int64_t end,
                                       const std::atomic<bool>* cancelled) {
  const HdfsCall call{.op = "OPEN",
                      .place = place,
                      .about = about,
                      .query = {{"offset", StrCat(begin)}, {"length", StrCat(end - begin)}}};
  TENON_ASSIGN_OR_RETURN(HttpResponse response, Send(call, cancelled));
  return std::move(response.body);
}

StatusOr<std::vector<std::string>> HdfsClient::List(const HdfsPlace& folder) {
  const HdfsCall call{.op = "LISTSTATUS", .place = folder, .what = "list"};
  TENON_ASSIGN_OR_RETURN(const HttpResponse response, Send(call));
  const Json entries = ValueIn(response, "/FileStatuses/FileStatus");
  if (!entries.is_array()) return StrangeAnswer(call, response);
  std::vector<std::string> names;
  for (const Json& entry : entries) {
    if (!entry.is_object()) return StrangeAnswer(call, response);
    names.push_back(TextIn(entry, "pathSuffix"));
    // A file is answered as the only thing in itself.
    if (names.back().empty()) {
      return FailedPrecondition("cannot list '", folder.Path(), "': it is a file, not a folder");
    }
  }
  return names;
}

Status HdfsClient::MakeFolders(const HdfsPlace& folder) {
  const HdfsCall call{.method = "PUT", .op = "MKDIRS", .place = folder, .what = "make the folder"};
  TENON_ASSIGN_OR_RETURN(const HttpResponse response, Send(call));
  return ValueIn(response, "/boolean") == true ? OkStatus() : StrangeAnswer(call, response);
}

Status HdfsClient::Rename(const HdfsPlace& from, const HdfsPlace& to, bool replace,
                          std::string what, const HdfsPlace& about) {
  if (from.authority != to.authority) {
    return Unimplemented("cannot ", what, " '", about.Path(), "' as '", to.Path(),
                         "': they have two namenodes");
  }
  const HdfsCall call{
      .method = "PUT",
      .op = "RENAME",
      .place = from,
      .what = std::move(what),
      .about = about,
      .query = {{"destination", to.path}, {"renameoptions", replace ? "OVERWRITE" : "NONE"}}};
  Retries retries(policy_, clock_);
  while (true) {
    const Answer answer = Try(call, nullptr);
    // A server that knows no such options answers whether it did it.
    if (answer.good()) {
      return ValueIn(*answer.response, "/boolean") != false
                 ? OkStatus()
                 : AlreadyExists("cannot ", call.what, " '", about.Path(),
                                 "': the server does not ", "rename it to '", to.Path(), "'");
    }
    if (IsWorthWaiting(answer, call, retries, nullptr)) continue;
    const Status status = StatusOf(answer, call, retries);
    // A try whose answer was lost may have done it.
    const bool may_be_done =
        retries.attempts() > 0 &&
        (status.code() == StatusCode::kNotFound || status.code() == StatusCode::kAlreadyExists);
    if (may_be_done && Stat(from).status().code() == StatusCode::kNotFound && Stat(to).ok()) {
      return OkStatus();
    }
    if (status.code() == StatusCode::kUnavailable && answer.response.ok()) {
      const StatusOr<HdfsFileInfo> other = Stat(to);
      if (other.ok() && other->is_folder) return AlreadyExists(Message(status));
    }
    return status;
  }
}

Status HdfsClient::Remove(const HdfsPlace& place, bool tree) {
  TENON_RETURN_IF_ERROR(Stat(place, "remove").status());
  const HdfsCall call{.method = "DELETE",
                      .op = "DELETE",
                      .place = place,
                      .what = "remove",
                      .query = {{"recursive", tree ? "true" : "false"}}};
  // An answer that it is not there any more comes after a try whose answer was lost, too.
  TENON_ASSIGN_OR_RETURN(const HttpResponse response, Send(call));
  return ValueIn(response, "/boolean").is_boolean() ? OkStatus() : StrangeAnswer(call, response);
}

StatusOr<HdfsPlace> HdfsClient::Create(const HdfsPlace& about, std::string_view content,
                                       const std::atomic<bool>* cancelled) {
  HdfsCall call{.method = "PUT",
                .op = "CREATE",
                .what = "write",
                .about = about,
                .query = {{"overwrite", "false"}},
                .has_content = true,
                .content = content};
  Retries retries(policy_, clock_);
  while (true) {
    // Each try has its own name, since what is left of one that broke may still write.
    call.place = about.Folder().In(TemporaryName(".tenon"));
    const Answer answer = Try(call, cancelled);
    if (answer.good()) return call.place;
    Try({.method = "DELETE", .op = "DELETE", .place = call.place}, nullptr);
    if (!IsWorthWaiting(answer, call, retries, cancelled)) return StatusOf(answer, call, retries);
  }
}

Status HdfsClient::TakeBack(HdfsGrowth& file, const std::atomic<bool>* cancelled) {
  HdfsCall call{.method = "POST",
                .op = "TRUNCATE",
                .what = "write",
                .about = file.about,
                .query = {{"newlength", StrCat(file.size)}}};
  Retries quick(policy_, clock_), slow(PatientPolicy(policy_), clock_);
  bool moves = !file.is_seen;
  while (true) {
    if (moves) {
      // A request that knows the old name finds no file from here on.
      HdfsPlace place = file.about.Folder().In(TemporaryName(".tenon"));
      TENON_RETURN_IF_ERROR(Rename(file.place, place, /*replace=*/false, "write", file.about));
      file.place = std::move(place);
    }
    call.place = file.place;
    const Answer answer = Try(call, cancelled);
    const Json done = answer.good() ? ValueIn(*answer.response, "/boolean") : Json();
    if (done == true) return OkStatus();
    if (answer.good() && done != false) return StrangeAnswer(call, *answer.response);
    // The datanodes are at it, or somebody still writes, until when the namenode refuses.
    const bool waits = answer.good() || answer.error.IsBusy();
    moves = !file.is_seen && !waits;
    const bool again = waits ? slow.Wait(answer.response, cancelled)
                             : IsWorthWaiting(answer, call, quick, cancelled);
    if (again) continue;
    const StatusOr<HdfsFileInfo> info = Stat(file.place, "write");
    const std::string found =
        info.ok() ? StrCat("found ", info->size, " bytes") : StrCat("its length is unknown");
    return DataLoss("cannot write '", file.about.Path(), "': a request to append broke; ", found,
                    ", wanted ", file.size, ", and what it wrote cannot be taken back: ",
                    answer.good() ? std::string("the server is not done")
                                  : Message(StatusOf(answer, call, waits ? slow : quick)));
  }
}

Status HdfsClient::Append(HdfsGrowth& file, std::string_view content,
                          const std::atomic<bool>* cancelled) {
  HdfsCall call{.method = "POST",
                .op = "APPEND",
                .what = "write",
                .about = file.about,
                .has_content = true,
                .content = content};
  const int64_t end = file.size + static_cast<int64_t>(content.size());
  Retries quick(policy_, clock_), slow(PatientPolicy(policy_), clock_);
  while (true) {
    if (file.is_doubtful) TENON_RETURN_IF_ERROR(TakeBack(file, cancelled));
    call.place = file.place;
    const Answer answer = Try(call, cancelled);
    if (!answer.good()) {
      const bool is_busy = answer.error.IsBusy();
      const bool may_be_late = answer.was_sent && !is_busy;
      file.is_doubtful = file.is_doubtful || may_be_late;
      const bool again = is_busy ? slow.Wait(answer.response, cancelled)
                                 : IsWorthWaiting(answer, call, quick, cancelled);
      if (!again) return StatusOf(answer, call, is_busy ? slow : quick);
      if (may_be_late && file.is_seen) {
        Retries({.attempts = 2, .first_pause = kLateness}, clock_).Wait(answer.response, cancelled);
      }
      continue;
    }
    if (file.is_doubtful || slow.attempts() > 0) {
      TENON_ASSIGN_OR_RETURN(const HdfsFileInfo info, Stat(file.place, "write"));
      if (info.size != end) {
        // A request that broke may have come between.
        if (file.is_doubtful && quick.Wait(answer.response, cancelled)) continue;
        return DataLoss("cannot write '", file.about.Path(), "': found ", info.size,
                        " bytes there, wanted ", end);
      }
      // All requests that broke know another name only, or else may still come.
      file.is_doubtful = file.is_seen;
    }
    file.size = end;
    return OkStatus();
  }
}

}  // namespace tenon
