// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/device/device_queue.h"
#include "core/device/queue_capture.h"
#include "runtime/accelerator/arena.h"
#include "runtime/accelerator/stream_device.h"

namespace tenon {

/// A capture of a StreamDevice's kernels: the driver's, the memory that they use, the words of
/// their checks, and what they copied in from the host's memory.
class StreamCapture final : public QueueCapture, private Device, private DeviceQueue {
 public:
  /// `checked`: whether kernels that were queued before have checks.
  StreamCapture(StreamDevice& real, std::unique_ptr<DriverCapture> capture, bool checked);
  ~StreamCapture() override;

  Device& device() override { return *this; }
  Status Finish() override;
  bool Queue(int64_t step_id, std::shared_ptr<void> in_use) override;

 private:
  // The device, for the kernels that are captured.
  const std::string& name() const override { return real_.name(); }
  DeviceKind kind() const override { return real_.kind(); }
  uint64_t incarnation() const override { return real_.incarnation(); }
  int64_t memory_limit() const override { return real_.memory_limit(); }
  Allocator& allocator() override { return arena_; }
  DeviceQueue* queue() override { return this; }
  Device& host() override { return real_.host(); }
  ResourceStore& resources() override { return real_.resources(); }
  const FileAccess& files() const override { return real_.files(); }

  // Its queue. What would have to wait is an error, with which the capture fails.
  StatusOr<Tensor> CopyToDevice(const Tensor& host) override;
  void CopyToHost(const Tensor& device, int64_t step_id,
                  std::function<void(StatusOr<Tensor>)> done) override;
  void CopyToPeer(const Tensor& device, DeviceQueue& peer, int64_t step_id,
                  std::function<void(StatusOr<Tensor>)> done) override;
  void EndStep(int64_t step_id, std::function<void(Status)> done) override;
  RunCheck AddCheck(int64_t step_id, std::function<Status(uint64_t)> describe) override;
  const RunFailure* FailureOf(int64_t step_id) override;
  StatusOr<std::unique_ptr<QueueCapture>> Capture(int64_t step_id) override;
  Status Wait() override;
  void* stream() override { return capture_->Native(); }

  struct PinnedDelete {
    PinnedMemory* memory;
    template <typename T>
    void operator()(T* t) const {
      memory->Free(t, sizeof(T));
    }
  };
  template <typename T>
  std::unique_ptr<T, PinnedDelete> NewPinned();  // null, and no capture any more, without memory
  Status CannotWait();

  StreamDevice& real_;
  const std::unique_ptr<DriverCapture> capture_;
  Arena& arena_;  // which outlives this while there are tensors in it
  bool open_ = true;
  Status status_;
  std::vector<Tensor> copied_;  // what it copies in
  // In pinned memory.
  std::vector<std::unique_ptr<uint64_t, PinnedDelete>> words_;
  std::unique_ptr<RunFailure, PinnedDelete> failure_;
  std::vector<StreamCheck> checks_;
};

}  // namespace tenon
