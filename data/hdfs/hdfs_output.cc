// SPDX-License-Identifier: Apache-2.0
#include "data/hdfs/hdfs_output.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "core/base/mutex.h"
#include "data/http/whole_output.h"

namespace tenon {
namespace {

constexpr size_t kHdfsPartBytes = 16 << 20;

class HdfsOutput final : public WholeOutput {
 public:
  HdfsOutput(HdfsClient& client, HdfsPlace place)
      : WholeOutput(client.clock(), place.Path()), client_(client), place_(std::move(place)) {
    file_.about = place_;
  }
  ~HdfsOutput() override {
    // A file that others have seen is one that grows; half of any other is none.
    if (file_.is_seen && is_sound()) Close().IgnoreError();
    cancelled_ = true;
    WaitForPart().IgnoreError();
    if (is_made_ && !file_.is_seen) client_.Remove(file_.place, false).IgnoreError();
  }

  /// Takes the name, which must be free.
  Status BeginNew() {
    TENON_RETURN_IF_ERROR(SendPart(""));
    return TakeName(/*replace=*/false);
  }
  /// Goes on with what the file has, or takes the name.
  Status BeginWithOld() {
    const StatusOr<HdfsFileInfo> info = client_.Stat(place_, "open for writing");
    if (info.status().code() == StatusCode::kNotFound) return BeginNew();
    TENON_RETURN_IF_ERROR(info.status());
    if (info->is_folder) {
      return FailedPrecondition("cannot open for writing '", place_.Path(), "': it is a folder");
    }
    file_.size = info->size;
    file_.place = place_;
    is_made_ = file_.is_seen = true;
    HasAppeared();
    return OkStatus();
  }

 protected:
  Status Add(std::string_view data) override {
    while (!data.empty()) {
      const size_t step = std::min(data.size(), kHdfsPartBytes - buffer_.size());
      // Small files take no more than they have.
      if (buffer_.size() + step > kHdfsPartBytes / 4) buffer_.reserve(kHdfsPartBytes);
      buffer_.append(data.substr(0, step));
      data.remove_prefix(step);
      if (buffer_.size() == kHdfsPartBytes) TENON_RETURN_IF_ERROR(BeginPart());
    }
    return OkStatus();
  }
  Status Put() override {
    TENON_RETURN_IF_ERROR(WaitForPart());
    if (!buffer_.empty() || !is_made_) TENON_RETURN_IF_ERROR(SendPart(std::exchange(buffer_, {})));
    if (file_.is_seen) return OkStatus();
    TENON_ASSIGN_OR_RETURN(const HdfsFileInfo info, client_.Stat(file_.place, "write"));
    if (info.size != file_.size) {
      return DataLoss("cannot write '", place_.Path(), "': found ", info.size,
                      " bytes there, wanted ", file_.size);
    }
    return TakeName(/*replace=*/true);
  }

 private:
  /// Sends the buffer, when the part before it is there, while the next one is filled.
  Status BeginPart() {
    TENON_RETURN_IF_ERROR(WaitForPart());
    auto part = std::make_shared<const std::string>(std::exchange(buffer_, {}));
    {
      MutexLock lock(mu_);
      is_sending_ = true;
    }
    const Status started = client_.workers().Run([this, part] {
      const Status sent = SendPart(*part);
      MutexLock lock(mu_);
      sent_ = sent;
      is_sending_ = false;
      changed_sending_.NotifyAll();
    });
    if (started.ok()) return OkStatus();
    MutexLock lock(mu_);
    is_sending_ = false;
    return started;
  }
  /// Runs alone: on a thread while `is_sending_`, on that of the caller otherwise.
  Status SendPart(std::string_view part) {
    if (is_made_) return client_.Append(file_, part, &cancelled_);
    TENON_ASSIGN_OR_RETURN(file_.place, client_.Create(place_, part, &cancelled_));
    file_.size = static_cast<int64_t>(part.size());
    is_made_ = true;
    return OkStatus();
  }
  Status WaitForPart() {
    MutexLock lock(mu_);
    while (is_sending_) changed_sending_.Wait(mu_);
    return sent_;
  }

  Status TakeName(bool replace) {
    TENON_RETURN_IF_ERROR(client_.Rename(file_.place, place_, replace, "write", place_));
    file_.place = place_;
    file_.is_seen = true;
    return OkStatus();
  }

  HdfsClient& client_;
  const HdfsPlace place_;
  HdfsGrowth file_;
  std::string buffer_;  // what was not sent yet
  bool is_made_ = false;
  std::atomic<bool> cancelled_{false};
  Mutex mu_;
  CondVar changed_sending_;
  bool is_sending_ ABSL_GUARDED_BY(mu_) = false;
  Status sent_ ABSL_GUARDED_BY(mu_);  // how the last part ended
};

}  // namespace

StatusOr<std::unique_ptr<OutputFile>> OpenHdfsOutput(HdfsClient& client, const HdfsPlace& place,
                                                     WriteMode mode) {
  auto file = std::make_unique<HdfsOutput>(client, place);
  if (mode == WriteMode::kNew) TENON_RETURN_IF_ERROR(file->BeginNew());
  if (mode == WriteMode::kAppend) TENON_RETURN_IF_ERROR(file->BeginWithOld());
  return std::unique_ptr<OutputFile>(std::move(file));
}

}  // namespace tenon
