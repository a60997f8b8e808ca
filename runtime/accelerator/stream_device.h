// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/device_queue.h"
#include "core/hash_map.h"
#include "core/mutex.h"
#include "runtime/accelerator/stream_driver.h"
#include "runtime/cpu_device.h"

namespace tenon {

/// A device with memory of its own, whose kernels queue on its driver's stream kCompute. Values go
/// in on kToDevice and out on kToHost, each beside the kernels, which wait for them and are waited
/// for. What a copy reads or writes lives until it is made. Thread-safe.
class StreamDevice final : public Device, public DeviceQueue {
 public:
  StreamDevice(std::string name, StreamDriver& driver, int64_t memory_limit,
               std::shared_ptr<ResourceStore> resources, FileAccess files = {});
  /// Waits for what is queued.
  ~StreamDevice() override;

  const std::string& name() const override { return host_.name(); }
  DeviceKind kind() const override { return kCuda; }
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
  uint64_t* AddCheck(int64_t step_id, std::function<Status(uint64_t)> describe) override;
  Status Wait() override;
  void* stream() override { return driver_.Native(Stream::kCompute); }

 private:
  /// Memory for a value of that dtype and shape that comes in on kToDevice, beside the kernels.
  StatusOr<Tensor> AllocateArriving(DType dtype, const Shape& shape);
  /// Calls `done` with `copy` when what is queued on kToHost until now is done, which reads
  /// `source`; with the step's error when it has one.
  void HandOutCopy(const Tensor& source, Tensor copy, int64_t step_id,
                   std::function<void(StatusOr<Tensor>)> done);

  /// A word that kernels of a step write when they fail.
  struct Check {
    uint64_t* word;
    std::function<Status(uint64_t)> describe;
  };
  static Status FirstFailure(const std::vector<Check>& checks);
  Status FailureSoFar(int64_t step_id);
  uint64_t* NewWord(uint64_t value);

  CpuDevice host_;
  StreamDriver& driver_;
  const int64_t memory_limit_;
  Mutex mu_;
  /// What copies to the device still read, about.
  std::vector<Tensor> held_ ABSL_GUARDED_BY(mu_);
  size_t held_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  flat_hash_map<int64_t, std::vector<Check>> checks_ ABSL_GUARDED_BY(mu_);
  /// The word of those checks for which there was no memory, which makes them fail; null when there
  /// was none for it either.
  uint64_t* const spare_word_;
};

}  // namespace tenon
