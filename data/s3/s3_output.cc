// SPDX-License-Identifier: Apache-2.0
#include "data/s3/s3_output.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "data/http/whole_output.h"
#include "data/s3/s3_input.h"

namespace tenon {
namespace {

constexpr size_t kPartBytes = 16 << 20;
/// Servers take no smaller part, but for the last one.
constexpr int64_t kLeastPart = 5 << 20;
constexpr int kMostSending = 4;

/// How large part `number` is: 10,000 parts are the most that an upload can have, and 5 TiB the
/// largest object.
size_t PartBytes(size_t number) {
  return number <= 1000 ? kPartBytes : number <= 5000 ? 4 * kPartBytes : 64 * kPartBytes;
}

/// An upload by parts that has begun.
class Upload {
 public:
  Upload(S3Client& client, S3Place place, std::string id)
      : client_(client), place_(std::move(place)), id_(std::move(id)) {}
  /// Gives it up unless it is complete.
  ~Upload() {
    if (completed_) return;
    cancelled_ = true;
    WaitForParts(0).IgnoreError();
    client_.AbortUpload(place_, id_);
  }

  size_t parts() const {
    MutexLock lock(mu_);
    return etags_.size();
  }

  /// Makes the object, which has `size` bytes, the first part. Unimplemented where the server does
  /// not copy it.
  Status CopyOld(int64_t size) {
    if (size > kLargestCopy) return Unimplemented("");
    TENON_ASSIGN_OR_RETURN(std::string etag, client_.CopyPart(place_, place_, id_, 1));
    MutexLock lock(mu_);
    etags_ = {std::move(etag)};
    size_ = size;
    return OkStatus();
  }

  /// Reads the object and sends it as the first parts.
  Status SendOld() {
    TENON_ASSIGN_OR_RETURN(const auto old, OpenS3Input(client_, place_.Path(), place_));
    for (int64_t at = 0; at < old->size();) {
      std::string bytes(PartBytes(parts() + 1), '\0');
      TENON_ASSIGN_OR_RETURN(const size_t found, old->ReadAt(at, bytes.size(), bytes.data()));
      bytes.resize(found);
      at += static_cast<int64_t>(found);
      // The bytes that are added get a part of their own, and only the last part may be small.
      const int64_t left = old->size() - at;
      if (left > 0 && left < kLeastPart) {
        std::string rest(static_cast<size_t>(left), '\0');
        TENON_RETURN_IF_ERROR(old->ReadAt(at, rest.size(), rest.data()).status());
        bytes += rest;
        at += left;
      }
      TENON_RETURN_IF_ERROR(Send(std::move(bytes)));
    }
    return OkStatus();
  }

  /// Sends another part; waits while there are as many on their way as there may be. An error is
  /// that of any part before.
  Status Send(std::string bytes) {
    TENON_RETURN_IF_ERROR(WaitForParts(kMostSending - 1));
    auto part = std::make_shared<const std::string>(std::move(bytes));
    size_t index = 0;
    {
      MutexLock lock(mu_);
      index = etags_.size();
      etags_.emplace_back();
      size_ += static_cast<int64_t>(part->size());
      ++sending_;
    }
    const Status started = client_.workers().Run([this, part, index] {
      const S3Call call{.method = "PUT",
                        .place = place_,
                        .what = "write",
                        .query = {{"partNumber", StrCat(index + 1)}, {"uploadId", id_}},
                        .body = *part};
      StatusOr<HttpResponse> response = client_.Send(call, &cancelled_);
      std::string etag = response.ok() ? response->Header("etag") : "";
      Status status = response.status();
      if (status.ok() && etag.empty()) {
        status = DataLoss("cannot write '", place_.Path(), "': part ", index + 1, " has no ETag");
      }
      MutexLock lock(mu_);
      etags_[index] = std::move(etag);
      Ended(status);
    });
    if (started.ok()) return OkStatus();
    MutexLock lock(mu_);
    Ended(started);
    return status_;
  }

  Status Complete() {
    TENON_RETURN_IF_ERROR(WaitForParts(0));
    std::vector<std::string> etags;
    int64_t size = 0;
    {
      MutexLock lock(mu_);
      etags = etags_;
      size = size_;
    }
    TENON_RETURN_IF_ERROR(client_.CompleteUpload(place_, id_, etags, size));
    completed_ = true;
    return OkStatus();
  }

 private:
  void Ended(const Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    status_.Update(status);
    --sending_;
    changed_.NotifyAll();
  }
  Status WaitForParts(int most) {
    MutexLock lock(mu_);
    while (sending_ > most) changed_.Wait(mu_);
    return status_;
  }

  S3Client& client_;
  const S3Place place_;
  const std::string id_;
  std::atomic<bool> cancelled_{false};
  bool completed_ = false;
  mutable Mutex mu_;
  CondVar changed_;
  Status status_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> etags_ ABSL_GUARDED_BY(mu_);  // empty while the part is on its way
  int64_t size_ ABSL_GUARDED_BY(mu_) = 0;
  int sending_ ABSL_GUARDED_BY(mu_) = 0;
};

class S3Output final : public WholeOutput {
 public:
  S3Output(S3Client& client, std::string path, S3Place place)
      : WholeOutput(client.clock(), std::move(path)), client_(client), place_(std::move(place)) {}
  ~S3Output() override {
    // A file that others have seen is one that grows; half of any other is none.
    if (appeared_ && is_sound()) Close().IgnoreError();
  }

  /// Goes on with what the object has.
  Status BeginWithOld() {
    const StatusOr<S3ObjectInfo> info = client_.Head(place_, "open for writing");
    if (info.status().code() == StatusCode::kNotFound) return OkStatus();
    TENON_RETURN_IF_ERROR(info.status());
    HasAppeared();
    appeared_ = true;
    if (info->size >= static_cast<int64_t>(kPartBytes)) {
      committed_ = info->size;
      return OkStatus();
    }
    TENON_ASSIGN_OR_RETURN(const auto old, OpenS3Input(client_, path(), place_));
    buffer_.resize(static_cast<size_t>(old->size()));
    return old->ReadAt(0, buffer_.size(), buffer_.data()).status();
  }

 protected:
  Status Add(std::string_view data) override {
    while (!data.empty()) {
      const size_t part = PartBytes(upload_ ? upload_->parts() + 1 : 1);
      const size_t step = std::min(data.size(), part - std::min(part, buffer_.size()));
      // Small files take no more than they have.
      if (buffer_.size() + step > kPartBytes / 4) buffer_.reserve(part);
      buffer_.append(data.substr(0, step));
      data.remove_prefix(step);
      if (buffer_.size() < part || (data.empty() && upload_ == nullptr)) continue;
      const Status sent = SendPart();
      if (!sent.ok()) upload_ = nullptr;
      TENON_RETURN_IF_ERROR(sent);
    }
    return OkStatus();
  }
  Status Put() override {
    const Status whole = PutAll();
    if (!whole.ok()) upload_ = nullptr;
    appeared_ = appeared_ || whole.ok();
    return whole;
  }

 private:
  Status BeginUpload() {
    TENON_ASSIGN_OR_RETURN(const std::string id, client_.BeginUpload(place_));
    upload_ = std::make_unique<Upload>(client_, place_, id);
    return OkStatus();
  }
  Status AddOld() {
    const Status copied = upload_->CopyOld(committed_);
    if (copied.code() != StatusCode::kUnimplemented) return copied;
    TENON_RETURN_IF_ERROR(BeginUpload());  // whose part 1 is not taken for an empty one
    return upload_->SendOld();
  }
  Status SendPart() {
    if (upload_ == nullptr) {
      TENON_RETURN_IF_ERROR(BeginUpload());
      if (committed_ > 0) TENON_RETURN_IF_ERROR(AddOld());
    }
    sent_ += static_cast<int64_t>(buffer_.size());
    return upload_->Send(std::exchange(buffer_, {}));
  }

  Status PutAll() {
    if (upload_ == nullptr && committed_ == 0) {
      const S3Call call{.method = "PUT", .place = place_, .what = "write", .body = buffer_};
      return client_.Send(call).status();
    }
    if (!buffer_.empty()) TENON_RETURN_IF_ERROR(SendPart());
    TENON_RETURN_IF_ERROR(upload_->Complete());
    upload_ = nullptr;
    committed_ += std::exchange(sent_, 0);
    return OkStatus();
  }

  S3Client& client_;
  const S3Place place_;
  std::string buffer_;     // what is in neither of the next two
  int64_t committed_ = 0;  // bytes that the object has and the buffer has not, at least a part
  int64_t sent_ = 0;       // bytes that are parts of the upload
  std::unique_ptr<Upload> upload_;
  bool appeared_ = false;
};

}  // namespace

StatusOr<std::unique_ptr<OutputFile>> OpenS3Output(S3Client& client, const std::string& path,
                                                   const S3Place& place, bool append) {
  auto file = std::make_unique<S3Output>(client, path, place);
  if (append) TENON_RETURN_IF_ERROR(file->BeginWithOld());
  return std::unique_ptr<OutputFile>(std::move(file));
}

}  // namespace tenon
