// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/device_queue.h"
#include "core/hash_map.h"
#include "core/memory_description.h"
#include "core/mutex.h"
#include "runtime/accelerator/stream_driver.h"
#include "runtime/cpu_device.h"

namespace tenon {

/// A device with memory of its own, whose kernels queue on its driver's stream kCompute. Values go
/// in on kToDevice and out on kToHost, each beside the kernels, which wait for them and are waited
/// for. What a copy reads or writes lives until it is made. Thread-safe.
class StreamDevice final : public Device, public DeviceQueue {
 public:
  /// `driver` must outlive the device and all tensors in its memory.
  StreamDevice(std::string name, StreamDriver& driver, int64_t memory_limit,
               std::shared_ptr<ResourceStore> resources, FileAccess files = {});
  /// Waits for what is queued.
  ~StreamDevice() override;

  const std::string& name() const override { return host_.name(); }
  DeviceKind kind() const override { return kCuda; }
  uint64_t incarnation() const override { return host_.incarnation(); }
  int64_t memory_limit() const override { return memory_limit_; }
  Allocator& allocator() override { return memory_; }
  DeviceQueue* queue() override { return this; }
  Device& host() override { return host_; }
  ResourceStore& resources() override { return host_.resources(); }
  const FileAccess& files() const override { return host_.files(); }

  StatusOr<Tensor> CopyToDevice(const Tensor& host) override;
  void CopyToHost(const Tensor& device, int64_t step_id,
                  std::function<void(StatusOr<Tensor>)> done) override;
  void EndStep(int64_t step_id, std::function<void(Status)> done) override;
  uint64_t* AddCheck(int64_t step_id, std::function<Status(uint64_t)> describe) override;
  Status Wait() override;
  void* stream() override { return driver_.Native(Stream::kCompute); }

 private:
  /// The device's memory, in the order of its kernels.
  class DeviceMemory final : public Allocator, public MemoryDescription {
   public:
    explicit DeviceMemory(StreamDriver& driver) : driver_(driver) {}
    std::string_view name() const override { return "device"; }
    void* Allocate(size_t bytes) override {
      return Count(driver_.Allocate(Stream::kCompute, bytes), bytes);
    }
    void Free(void* memory, size_t bytes) override;
    bool IsHostMemory() const override { return false; }
    int64_t bytes_in_use() const override { return bytes_.load(std::memory_order_relaxed); }
    void Copy(void* to, const void* from, size_t bytes) override {
      driver_.Copy(Stream::kCompute, to, from, bytes);
    }
    std::string DescribeMemory() const override;
    /// Memory that was allocated for another stream, which Free gives back too.
    void* Count(void* memory, size_t bytes);

   private:
    StreamDriver& driver_;
    std::atomic<int64_t> bytes_{0};
  };

  /// Pinned host memory. Blocks are kept for the next of their size: pinning takes the system long.
  class PinnedMemory final : public Allocator {
   public:
    explicit PinnedMemory(StreamDriver& driver) : driver_(driver) {}
    ~PinnedMemory() override;
    std::string_view name() const override { return "pinned"; }
    void* Allocate(size_t bytes) override;
    void Free(void* memory, size_t bytes) override;
    bool IsHostMemory() const override { return true; }
    int64_t bytes_in_use() const override { return bytes_.load(std::memory_order_relaxed); }

   private:
    StreamDriver& driver_;
    std::atomic<int64_t> bytes_{0};
    Mutex mu_;
    size_t kept_bytes_ ABSL_GUARDED_BY(mu_) = 0;
    flat_hash_map<size_t, std::vector<void*>> kept_ ABSL_GUARDED_BY(mu_);
  };

  /// A word that kernels of a step write when they fail.
  struct Check {
    uint64_t* word;
    std::function<Status(uint64_t)> describe;
  };
  static Status FirstFailure(const std::vector<Check>& checks);
  Status FailureSoFar(int64_t step_id);

  CpuDevice host_;
  StreamDriver& driver_;
  const int64_t memory_limit_;
  DeviceMemory memory_;
  PinnedMemory pinned_;
  Mutex mu_;
  /// What copies to the device still read, about.
  std::vector<Tensor> held_ ABSL_GUARDED_BY(mu_);
  size_t held_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  flat_hash_map<int64_t, std::vector<Check>> checks_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
