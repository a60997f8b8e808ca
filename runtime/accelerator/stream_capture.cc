// SPDX-License-Identifier: Apache-2.0
#include "runtime/accelerator/stream_capture.h"

#include <cstring>
#include <utility>

namespace tenon {

StreamCapture::StreamCapture(StreamDevice& real, std::unique_ptr<DriverCapture> capture,
                             bool checked)
    : real_(real),
      capture_(std::move(capture)),
      arena_(*new Arena(real.driver(), *capture_)),
      failure_(checked ? NewPinned<RunFailure>() : nullptr) {}

StreamCapture::~StreamCapture() {
  if (open_) (void)Finish();
  arena_.Abandon();
}

Status StreamCapture::Finish() {
  open_ = false;
  arena_.Close();
  if (arena_.refused()) status_.Update(FailedPrecondition("other memory is wanted"));
  status_.Update(capture_->Finish());
  return status_;
}

bool StreamCapture::Queue(int64_t step_id, std::shared_ptr<void> in_use) {
  if (!arena_.Use()) return false;
  /// Until the step is over.
  struct Use {
    ~Use() { capture.arena_.Rest(); }
    StreamCapture& capture;
    const std::shared_ptr<void> in_use;  // goes after the arena rests
  };
  for (const StreamCheck& check : checks_) *check.word = 0;
  real_.AddChecks(step_id, checks_, std::make_shared<Use>(*this, std::move(in_use)),
                  failure_.get());
  capture_->Queue();
  return true;
}

/// The copy is repeated too, from pinned memory that is kept: kernels may change what they get.
StatusOr<Tensor> StreamCapture::CopyToDevice(const Tensor& host) {
  TENON_ASSIGN_OR_RETURN(Tensor source,
                         Tensor::Allocate(real_.driver().pinned(), host.dtype(), host.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(arena_, host.dtype(), host.shape()));
  if (host.num_bytes() > 0) {
    std::memcpy(source.raw_data(), host.raw_data(), host.num_bytes());
    capture_->Copy(copy.raw_data(), source.raw_data(), host.num_bytes());
  }
  copied_.push_back(std::move(source));
  return copy;
}

template <typename T>
std::unique_ptr<T, StreamCapture::PinnedDelete> StreamCapture::NewPinned() {
  PinnedMemory& pinned = real_.driver().pinned();
  void* const memory = pinned.Allocate(sizeof(T));
  if (memory == nullptr) status_.Update(ResourceExhausted("out of pinned memory for checks"));
  return {memory == nullptr ? nullptr : new (memory) T(), PinnedDelete{&pinned}};
}

RunCheck StreamCapture::AddCheck(int64_t step_id, std::function<Status(uint64_t)> describe) {
  if (failure_ == nullptr) failure_ = NewPinned<RunFailure>();
  auto word = NewPinned<uint64_t>();
  if (word == nullptr || failure_ == nullptr) return real_.AddCheck(step_id, std::move(describe));
  words_.push_back(std::move(word));
  checks_.push_back({words_.back().get(), std::move(describe)});
  return {words_.back().get(), failure_.get()};
}

const RunFailure* StreamCapture::FailureOf(int64_t) { return failure_.get(); }

Status StreamCapture::CannotWait() {
  status_.Update(FailedPrecondition("a kernel waits for what is being captured"));
  return status_;
}

void StreamCapture::CopyToHost(const Tensor&, int64_t, std::function<void(StatusOr<Tensor>)> done) {
  done(CannotWait());
}

void StreamCapture::CopyToPeer(const Tensor&, DeviceQueue&, int64_t,
                               std::function<void(StatusOr<Tensor>)> done) {
  done(CannotWait());
}

void StreamCapture::EndStep(int64_t, std::function<void(Status)> done) { done(CannotWait()); }

StatusOr<std::unique_ptr<QueueCapture>> StreamCapture::Capture(int64_t) { return CannotWait(); }

Status StreamCapture::Wait() { return CannotWait(); }

StatusOr<std::unique_ptr<QueueCapture>> StreamDevice::Capture(int64_t step_id) {
  TENON_ASSIGN_OR_RETURN(std::unique_ptr<DriverCapture> capture, driver_.Capture());
  return std::make_unique<StreamCapture>(*this, std::move(capture), FailureOf(step_id) != nullptr);
}

}  // namespace tenon
