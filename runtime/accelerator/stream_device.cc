// SPDX-License-Identifier: Apache-2.0
#include "runtime/accelerator/stream_device.h"

#include <utility>

namespace tenon {
namespace {

/// Beyond so much, what copies have read is let go before the step ends.
constexpr size_t kMostHeld = 64, kMostHeldBytes = 64 << 20;
Status WithoutMemory(uint64_t) { return ResourceExhausted("out of pinned memory for checks"); }

}  // namespace

StreamDevice::StreamDevice(std::string name, DeviceKind kind, StreamDriver& driver,
                           int64_t memory_limit, std::shared_ptr<ResourceStore> resources,
                           FileAccess files)
    : host_(std::move(name), std::move(resources), std::move(files)),
      kind_(kind),
      driver_(driver),
      memory_limit_(memory_limit),
      spare_(NewFailureWord(1)) {}

StreamDevice::~StreamDevice() {
  (void)Wait();
  if (spare_ != nullptr) driver_.pinned().Free(spare_, sizeof(FailureWord));
}

StatusOr<Tensor> StreamDevice::AllocateArriving(DType dtype, const Shape& shape) {
  const size_t bytes = static_cast<size_t>(shape.num_elements()) * SizeOf(dtype);
  void* const memory = driver_.memory().Allocate(Stream::kToDevice, bytes);
  if (memory == nullptr) {
    return ResourceExhausted("OOM when allocating tensor with shape", shape, " and type ", dtype,
                             " on ", name(), driver_.memory().DescribeMemory());
  }
  return Tensor(dtype, shape, AdoptMemory(driver_.memory(), memory, bytes));
}

StatusOr<Tensor> StreamDevice::CopyToDevice(const Tensor& host) {
  const size_t bytes = host.num_bytes();
  TENON_ASSIGN_OR_RETURN(Tensor copy, AllocateArriving(host.dtype(), host.shape()));
  if (bytes > 0) driver_.Copy(Stream::kToDevice, copy.raw_data(), host.raw_data(), bytes);
  driver_.WaitFor(Stream::kCompute, Stream::kToDevice);
  std::vector<Tensor> read;
  {
    MutexLock lock(mu_);
    held_.push_back(host);
    held_bytes_ += bytes;
    if (held_.size() > kMostHeld || held_bytes_ > kMostHeldBytes) {
      read = std::exchange(held_, {});
      held_bytes_ = 0;
    }
  }
  if (!read.empty()) {
    driver_.CallWhenDone(Stream::kToDevice,
                         [read = std::move(read)](const Status&) mutable { read.clear(); });
  }
  return copy;
}

void StreamDevice::CopyToHost(const Tensor& device, int64_t step_id,
                              std::function<void(StatusOr<Tensor>)> done) {
  StatusOr<Tensor> host = Tensor::Allocate(driver_.staging(), device.dtype(), device.shape());
  if (!host.ok()) return done(std::move(host));
  driver_.WaitFor(Stream::kToHost, Stream::kCompute);
  if (device.num_bytes() > 0) {
    driver_.Copy(Stream::kToHost, host->raw_data(), device.raw_data(), device.num_bytes());
  }
  HandOutCopy(device, *std::move(host), step_id, std::move(done));
}

void StreamDevice::CopyToPeer(const Tensor& device, DeviceQueue& peer, int64_t step_id,
                              std::function<void(StatusOr<Tensor>)> done) {
  auto& target = static_cast<StreamDevice&>(peer);
  StatusOr<Tensor> copy = target.AllocateArriving(device.dtype(), device.shape());
  if (!copy.ok()) return done(std::move(copy));
  // On the stream that waits for kernels of this device in any case. The other device's streams
  // have nothing to wait for: nothing of its own goes on later because of a value that is still
  // being made here.
  driver_.WaitFor(Stream::kToHost, Stream::kCompute);
  driver_.CopyToPeer(Stream::kToHost, target.driver_, Stream::kToDevice, copy->raw_data(),
                     device.raw_data(), device.num_bytes());
  HandOutCopy(device, *std::move(copy), step_id, std::move(done));
}

void StreamDevice::HandOutCopy(const Tensor& source, Tensor copy, int64_t step_id,
                               std::function<void(StatusOr<Tensor>)> done) {
  driver_.CallWhenDone(Stream::kToHost, [this, source = source, step_id, copy = std::move(copy),
                                         done = std::move(done)](const Status& status) mutable {
    source = Tensor();
    Status failure = status.ok() ? FailureSoFar(step_id) : status;
    if (!failure.ok()) return done(std::move(failure));
    done(std::move(copy));
  });
}

void StreamDevice::EndStep(int64_t step_id, std::function<void(Status)> done) {
  std::vector<Tensor> read;
  RunRecord step;
  {
    MutexLock lock(mu_);
    read = std::exchange(held_, {});
    held_bytes_ = 0;
    if (const auto found = steps_.find(step_id); found != steps_.end()) {
      step = std::move(found->second);
      steps_.erase(found);
    }
  }
  driver_.CallWhenDone(Stream::kCompute, [this, read = std::move(read), step = std::move(step),
                                          done = std::move(done)](const Status& status) mutable {
    read.clear();  // the kernels have waited for what copied it
    Status result = status.ok() ? FirstFailure(step) : status;
    for (uint64_t* word : step.words) driver_.pinned().Free(word, sizeof(uint64_t));
    if (step.failure != nullptr && step.failure != spare_) {
      driver_.pinned().Free(step.failure, sizeof(FailureWord));
    }
    step = {};
    done(std::move(result));
  });
}

StreamDevice::RunRecord& StreamDevice::WithFailure(int64_t step_id) {
  RunRecord& step = steps_[step_id];
  if (step.failure == nullptr) step.failure = NewFailureWord(0);
  if (step.failure != nullptr) return step;
  step.failure = spare_;
  TENON_CHECK(step.failure != nullptr, "out of pinned memory");
  step.checks.push_back({&spare_->failed, WithoutMemory});
  return step;
}

RunCheck StreamDevice::AddCheck(int64_t step_id, std::function<Status(uint64_t)> describe) {
  MutexLock lock(mu_);
  RunRecord& step = WithFailure(step_id);
  auto* word = step.failure == spare_ ? nullptr : NewPinned<uint64_t>();
  if (word != nullptr) {
    *word = 0;
    step.words.push_back(word);
  } else {  // also where the device has failed
    word = &step.failure->failed;
    std::atomic_ref(*word).store(1, std::memory_order_release);
    describe = WithoutMemory;
  }
  step.checks.push_back({word, std::move(describe)});
  return {word, &step.failure->place};
}

const RunFailure* StreamDevice::FailureOf(int64_t step_id) {
  MutexLock lock(mu_);
  const auto found = steps_.find(step_id);
  if (found == steps_.end() || found->second.failure == nullptr) return nullptr;
  return &found->second.failure->place;
}

void StreamDevice::AddChecks(int64_t step_id, const std::vector<StreamCheck>& checks,
                             std::shared_ptr<void> held, RunFailure* failure) {
  MutexLock lock(mu_);
  if (failure != nullptr) failure->word = &WithFailure(step_id).failure->failed;
  RunRecord& step = steps_[step_id];
  step.checks.insert(step.checks.end(), checks.begin(), checks.end());
  step.held.push_back(std::move(held));
}

template <typename T>
T* StreamDevice::NewPinned() {
  return static_cast<T*>(driver_.pinned().Allocate(sizeof(T)));
}

StreamDevice::FailureWord* StreamDevice::NewFailureWord(uint64_t failed) {
  auto* const word = NewPinned<FailureWord>();
  if (word != nullptr) *word = {{&word->failed}, failed};
  return word;
}

Status StreamDevice::Wait() {
  Mutex mu;
  CondVar cv;
  bool over = false;
  Status result;
  driver_.CallWhenDone(Stream::kCompute, [&](const Status& status) {
    MutexLock lock(mu);
    result = status;
    over = true;
    cv.NotifyOne();
  });
  MutexLock lock(mu);
  while (!over) cv.Wait(mu);
  return result;
}

Status StreamDevice::FirstFailure(const RunRecord& step) {
  for (const StreamCheck& check : step.checks) {
    if (const uint64_t word = std::atomic_ref(*check.word).load(std::memory_order_acquire)) {
      return check.describe(word);
    }
  }
  return OkStatus();
}

Status StreamDevice::FailureSoFar(int64_t step_id) {
  MutexLock lock(mu_);
  const auto found = steps_.find(step_id);
  return found == steps_.end() ? OkStatus() : FirstFailure(found->second);
}

}  // namespace tenon
