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
#include "data/hdfs/hdfs_error.h"
#include "data/hdfs/hdfs_place.h"
#include "data/http/http_client.h"
#include "data/http/retries.h"
#include "data/http/workers.h"

namespace tenon {

/// An operation of WebHDFS, which may be asked for several times.
struct HdfsCall {
  std::string method = "GET";
  std::string op;  // "GETFILESTATUS"
  HdfsPlace place = {};
  std::string what = "read";  // as errors call it
  HdfsPlace about = {};       // what errors name; without a scheme: the place
  std::vector<std::pair<std::string, std::string>> query = {};
  /// Whether the operation has content, which goes to a datanode that the namenode names.
  bool has_content = false;
  std::string_view content = {};  // kept by the caller
};

/// The words of a namenode about a file or folder.
struct HdfsFileInfo {
  bool is_folder = false;
  int64_t size = 0;
  int64_t id = 0;  // of the file, whatever its name; 0 where the server tells none
  Clock::WallTime modified_at;
};

/// A file that grows by requests to append, and is written by nobody else.
struct HdfsGrowth {
  HdfsPlace place;           // where its bytes are
  HdfsPlace about;           // what errors call it
  int64_t size = 0;          // bytes that were sent and are there
  bool is_seen = false;      // whether others know its name, which it then keeps
  bool is_doubtful = false;  // whether a request that broke may have written there, or may yet
};

/// Speaks WebHDFS, over HTTP or HTTPS. Thread-safe.
class HdfsClient {
 public:
  /// `clock` outlives this.
  HdfsClient(HdfsSettings settings, Clock& clock, RetryPolicy policy = {});

  /// NotFound without such a file or folder.
  StatusOr<HdfsFileInfo> Stat(const HdfsPlace& place, std::string what = "look at");
  /// Bytes `begin` to `end` of a file, where `about` is what errors call it; fewer where it ends.
  StatusOr<std::string> Read(const HdfsPlace& place, const HdfsPlace& about, int64_t begin,
                             int64_t end, const std::atomic<bool>* cancelled = nullptr);
  /// The names in a folder, in no order; FailedPrecondition for a file.
  StatusOr<std::vector<std::string>> List(const HdfsPlace& folder);
  Status MakeFolders(const HdfsPlace& folder);
  /// Gives a file or folder another name, of which AlreadyExists says that it is taken: unless
  /// `replace`, by a file, or else by a folder that is not empty.
  Status Rename(const HdfsPlace& from, const HdfsPlace& to, bool replace, std::string what,
                const HdfsPlace& about);
  /// Removes a file, an empty folder or, with `tree`, any. NotFound without one, AlreadyExists for
  /// a folder that is not empty.
  Status Remove(const HdfsPlace& place, bool tree);

  /// Makes a file of a name that nobody uses, in the folder of `about`, which is made with it.
  StatusOr<HdfsPlace> Create(const HdfsPlace& about, std::string_view content,
                             const std::atomic<bool>* cancelled = nullptr);
  /// Appends to a file. What a request that broke left there is taken away before the content is
  /// sent again, and the file's length is checked then; a file that nobody has seen gets another
  /// name first, which such a request does not know. DataLoss where the length is not what was
  /// sent, or where the server cannot take anything away.
  Status Append(HdfsGrowth& file, std::string_view content,
                const std::atomic<bool>* cancelled = nullptr);

  /// Runs what is sent beside its caller.
  Workers& workers() { return workers_; }
  Clock& clock() { return clock_; }
  const HdfsSettings& settings() const { return settings_; }

 private:
  /// How one try ended: with an answer that is good (error.status is 0) or not, or with none.
  struct Answer {
    StatusOr<HttpResponse> response;
    HdfsError error;
    std::string server;     // who was asked last
    bool was_sent = false;  // whether a datanode may have got some of the content

    bool good() const { return response.ok() && error.status == 0; }
  };

  Answer Try(const HdfsCall& call, const std::atomic<bool>* cancelled);
  /// Whether there is to be another try, after a pause.
  bool IsWorthWaiting(const Answer& answer, const HdfsCall& call, Retries& retries,
                      const std::atomic<bool>* cancelled);
  Status StatusOf(const Answer& answer, const HdfsCall& call, const Retries& retries) const;
  /// Tries until the answer is good, or not to be mended by another try.
  StatusOr<HttpResponse> Send(const HdfsCall& call, const std::atomic<bool>* cancelled = nullptr);
  /// Makes the file `size` bytes long again once no request writes to it any more.
  Status TakeBack(HdfsGrowth& file, const std::atomic<bool>* cancelled);
  std::string UrlOf(const HdfsCall& call, const std::string& server, bool negotiate) const;
  StatusOr<HttpResponse> SendTo(const std::string& url, const HdfsCall& call,
                                std::string_view content, bool negotiate,
                                const std::atomic<bool>* cancelled);

  const HdfsSettings settings_;
  Clock& clock_;
  const RetryPolicy policy_;
  HttpClient http_;
  std::atomic<size_t> active_{0};        // which of several namenodes answers
  std::atomic<bool> negotiates_{false};  // a namenode asked for Kerberos
  Workers workers_;
};

}  // namespace tenon
