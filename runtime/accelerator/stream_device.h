// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "core/device/device_queue.h"
#include "runtime/accelerator/stream_driver.h"
#include "runtime/device/cpu_device.h"

namespace tenon {

/// A word that kernels of a step write when they fail, and what it says then.
struct StreamCheck {
  uint64_t* word = nullptr;
  std::function<Status(uint64_t)> describe;
};

/// A device with memory of its own, whose kernels queue on its driver's stream kCompute. Values go
/// in on kToDevice and out on kToHost, each beside the kernels, which wait for them and are waited
/// for. What a copy reads or writes lives until it is made. Thread-safe.
class StreamDevice final : public Device, public DeviceQueue {
 public:
  StreamDevice(std::string name, DeviceKind kind, StreamDriver& driver, int64_t memory_limit,
               std::shared_ptr<ResourceStore> resources, FileAccess files = {});
  /// Waits for what is queued.
  ~StreamDevice() override;

  const std::string& name() const override { return host_.name(); }
  DeviceKind kind() const override { return kind_; }
  uint64_t incarnation() const override { return host_.incarnation(); }
  int64_t memory_limit() const override { return memory_limit_; }
  Allocator& allocator() override { return driver_.memory(); }
  DeviceQueue* queue() override { return this; }
  Device& host() override { return host_; }
  ResourceStore& resources() override { return host_.resources(); }
  const FileAccess& files() const override { return host_.files(); }

  Allocator& host_allocator() override { return driver_.staging(); }
  StatusOr<Tensor> CopyToDevice(const Tensor& host) override;
  void CopyToHost(const Tensor& device, int64_t step_id,
                  std::function<void(StatusOr<Tensor>)> done) override;
  void CopyToPeer(const Tensor& device, DeviceQueue& peer, int64_t step_id,
                  std::function<void(StatusOr<Tensor>)> done) override;
  void EndStep(int64_t step_id, std::function<void(Status)> done) override;
  RunCheck AddCheck(int64_t step_id, std::function<Status(uint64_t)> describe) override;
  const RunFailure* FailureOf(int64_t step_id) override;
  StatusOr<std::unique_ptr<QueueCapture>> Capture(int64_t step_id) override;  // a StreamCapture
  Status Wait() override;
  void* stream() override { return driver_.Native(Stream::kCompute); }

  StreamDriver& driver() { return driver_; }
  /// Makes checks, whose words `held` frees, those of a step at whose end it is let go. When
  /// `failure` is not null it becomes the step's.
  void AddChecks(int64_t step_id, const std::vector<StreamCheck>& checks,
                 std::shared_ptr<void> held, RunFailure* failure);

 private:
  /// Memory for a value of that dtype and shape that comes in on kToDevice, beside the kernels.
  StatusOr<Tensor> AllocateArriving(DType dtype, const Shape& shape);
  /// Calls `done` with `copy` when what is queued on kToHost until now is done, which reads
  /// `source`; with the step's error when it has one.
  void HandOutCopy(const Tensor& source, Tensor copy, int64_t step_id,
                   std::function<void(StatusOr<Tensor>)> done);

  /// In pinned memory: whether a step has failed, and where that is.
  struct FailureWord {
    RunFailure place;
    uint64_t failed;
  };
  /// What is kept of a step until its end.
  struct RunRecord {
    FailureWord* failure = nullptr;  // null: without checks
    std::vector<StreamCheck> checks;
    std::vector<uint64_t*> words;  // to be freed
    std::vector<std::shared_ptr<void>> held;
  };
  RunRecord& WithFailure(int64_t step_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static Status FirstFailure(const RunRecord& step);
  Status FailureSoFar(int64_t step_id);
  template <typename T>
  T* NewPinned();
  FailureWord* NewFailureWord(uint64_t failed);

  CpuDevice host_;
  const DeviceKind kind_;
  StreamDriver& driver_;
  const int64_t memory_limit_;
  Mutex mu_;
  /// What copies to the device still read, about.
  std::vector<Tensor> held_ ABSL_GUARDED_BY(mu_);
  size_t held_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  flat_hash_map<int64_t, RunRecord> steps_ ABSL_GUARDED_BY(mu_);
  /// The word of runs for whose checks there was no memory, which makes them fail; null when there
  /// was no memory for the word either.
  FailureWord* const spare_;
};

}  // namespace tenon
