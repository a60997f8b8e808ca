// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include "core/base/interruption.h"
#include "core/base/mutex.h"
#include "core/op/op_registry.h"
#include "data/batch/random_sequence.h"
#include "data/files/match_files.h"
#include "data/records/record_file.h"
#include "ops/io/files_for.h"

namespace tenon {
namespace {

/// The records of all files that match a pattern, again and again: in every round each comes once,
/// in an order that the seed tells. Thread-safe.
class RecordInputKernel final : public Kernel {
 public:
  explicit RecordInputKernel(KernelConstruction& c)
      : Kernel(c),
        pattern_(c.Attr<std::string>("file_pattern")),
        seed_(static_cast<uint64_t>(c.Attr<int64_t>("file_random_seed"))),
        shift_(c.Attr<float>("file_shuffle_shift_ratio")),
        buffer_size_(c.Attr<int64_t>("file_buffer_size")),
        parallelism_(c.Attr<int64_t>("file_parallelism")),
        batch_(c.Attr<int64_t>("batch_size")) {
    const StatusOr<Compression> compression =
        ParseCompression(c.Attr<std::string>("compression_type"));
    if (compression.ok()) {
      compression_ = *compression;
    } else {
      c.Fail(compression.status());
    }
    if (buffer_size_ < 1 || parallelism_ < 1 || batch_ < 1) {
      c.Fail(InvalidArgument(
          "file_buffer_size, file_parallelism and batch_size must be positive, found ",
          buffer_size_, ", ", parallelism_, " and ", batch_));
    }
  }

  Status Compute(KernelContext& ctx) const override {
    TENON_ASSIGN_OR_RETURN(const FileContext files, FilesFor(ctx));
    TENON_ASSIGN_OR_RETURN(Tensor * records, ctx.AllocateOutput(0, {batch_}));
    MutexLock lock(mu_);
    for (TString& record : records->flat<TString>()) {
      TENON_RETURN_IF_ERROR(files.CheckCancelled());
      TENON_RETURN_IF_ERROR(Fill(files));
      std::swap(buffer_[random_.Below(buffer_.size())], buffer_.back());
      record = std::move(buffer_.back());
      buffer_.pop_back();
    }
    return OkStatus();
  }

 private:
  /// Takes records into the buffer, at least one, while there is room and the round has more;
  /// begins the next round when none is left of this one.
  Status Fill(const FileContext& files) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (bool is_new = false;;) {
      if (buffer_.empty() && readers_.empty() && paths_.empty()) {
        if (is_new) return OutOfRange("the files at ", pattern_, " have no records");
        TENON_RETURN_IF_ERROR(BeginRound(files));
        is_new = true;
      }
      TENON_RETURN_IF_ERROR(ReadMore(files));
      if (!buffer_.empty()) return OkStatus();
    }
  }

  Status ReadMore(const FileContext& files) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    while (static_cast<int64_t>(buffer_.size()) < buffer_size_) {
      while (!paths_.empty() && static_cast<int64_t>(readers_.size()) < parallelism_) {
        const std::string path = std::move(paths_.back());
        paths_.pop_back();
        TENON_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> file, OpenInput(path, files));
        readers_.push_back(
            std::make_unique<RecordReader>(MakeSource(std::move(file), compression_), path));
      }
      if (readers_.empty()) return OkStatus();
      TENON_RETURN_IF_ERROR(files.CheckCancelled());
      TENON_RETURN_IF_ERROR(ReadFrom(random_.Below(readers_.size())));
    }
    return OkStatus();
  }

  Status ReadFrom(size_t reader) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    std::string record;
    const StatusOr<bool> found = readers_[reader]->Read(&record);
    if (found.ok() && *found) {
      buffer_.emplace_back(record);
      return OkStatus();
    }
    // What is damaged is not read on.
    readers_.erase(readers_.begin() + static_cast<int64_t>(reader));
    return found.status();
  }

  Status BeginRound(const FileContext& files) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    TENON_ASSIGN_OR_RETURN(paths_, MatchFiles(pattern_, files));
    if (paths_.empty()) return NotFound("Found no files at ", pattern_);
    RandomSequence order(seed_ + ++round_);
    for (size_t i = paths_.size() - 1; i > 0; --i) std::swap(paths_[i], paths_[order.Below(i + 1)]);
    if (shift_ > 0 && shift_ < 1) {
      const auto by = static_cast<int64_t>(shift_ * static_cast<float>(paths_.size()));
      std::rotate(paths_.begin(), paths_.begin() + by, paths_.end());
    }
    return OkStatus();
  }

  const std::string pattern_;
  const uint64_t seed_;
  const float shift_;
  const int64_t buffer_size_, parallelism_, batch_;
  Compression compression_ = Compression::kNone;
  mutable Mutex mu_;
  mutable RandomSequence random_ ABSL_GUARDED_BY(mu_){seed_};
  mutable uint64_t round_ ABSL_GUARDED_BY(mu_) = 0;
  mutable std::vector<std::string> paths_
      ABSL_GUARDED_BY(mu_);  // not opened yet; the next one last
  mutable std::vector<std::unique_ptr<RecordReader>> readers_ ABSL_GUARDED_BY(mu_);
  mutable CountedVector<TString> buffer_ ABSL_GUARDED_BY(mu_);
};

Status RecordInputShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const int64_t batch, c.Attr<int64_t>("batch_size"));
  return c.Return(PartialShape{batch});
}

}  // namespace

void RegisterRecordInput(OpRegistry& ops) {
  ops.Add<RecordInputKernel>("RecordInput", RecordInputShape)
      .NoExample("reads files; record_input_test covers it");
}

}  // namespace tenon
