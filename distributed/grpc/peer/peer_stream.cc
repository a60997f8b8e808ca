// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/peer/peer_stream.h"

#include "core/base/exceptions.h"
#include "runtime/device/deferral.h"

namespace tenon {
namespace {

/// A message is closed when it has this much, so that none grows beyond what gRPC can carry.
constexpr size_t kFullMessageBytes = kTensorPartBytes;

/// With more bytes waiting, those of shared tensors not counted, nothing is read: who sends calls
/// and does not take the answers must not fill the memory with them.
constexpr size_t kMaxQueuedBytes = 64 << 20;

constexpr std::chrono::milliseconds kIdleDelay{50};

}  // namespace

void PeerStream::Open(Reader* reader, Writer* writer) {
  reader_ = reader;
  writer_ = writer;
  {
    MutexLock lock(mu_);
    self_ = shared_from_this();
    writing_ = false;
  }
  reader_->Read(&arriving_, read_.tag());
  WriteNext();
}

FrameBatch& PeerStream::LastBatch() {
  if (queue_.empty() || queue_.back().num_bytes() >= kFullMessageBytes) queue_.emplace_back();
  return queue_.back();
}

bool PeerStream::Append(const cluster::PeerFrame& frame) {
  if (broken_) return false;
  // A frame need not wait until the tensors before it have left, but what ends a call must not come
  // before the call.
  const bool ends_call = frame.content_case() == cluster::PeerFrame::kCancel ||
                         frame.content_case() == cluster::PeerFrame::kCleanupGraph;
  const bool at_end =
      ends_call || queue_.empty() || queue_.front().num_bytes() >= 2 * kFullMessageBytes;
  FrameBatch& batch = at_end ? LastBatch() : queue_.front();
  queued_bytes_ -= batch.own_bytes();
  batch.Add(frame);
  queued_bytes_ += batch.own_bytes();
  return true;
}

void PeerStream::Enqueue(const cluster::PeerFrame& frame) {
  MutexLock lock(mu_);
  Append(frame);
}

void PeerStream::WriteSoon(const cluster::PeerFrame& frame) {
  if (frame.has_recv_tensor()) {
    // The tensors that this thread sends to other streams go first: somebody waits for those.
    Defer([self = shared_from_this()] { self->WriteAtEndOfBurst(); });
  } else {
    WriteAtEndOfBurst();
  }
}

void PeerStream::SendIdly(const cluster::PeerFrame& frame) {
  {
    MutexLock lock(mu_);
    if (!Append(frame) || std::exchange(alarm_set_, true)) return;
  }
  poller_.PostAfter(kIdleDelay, [self = shared_from_this()] {
    {
      MutexLock lock(self->mu_);
      self->alarm_set_ = false;
    }
    self->WriteNext();
  });
}

void PeerStream::SendTensor(uint64_t call, const EncodedTensor& tensor, bool stays) {
  {
    MutexLock lock(mu_);
    if (broken_) return;
    FrameBatch& batch = LastBatch();
    queued_bytes_ -= batch.own_bytes();
    batch.AddTensor(call, tensor);
    if (stays) batch.AddPlace(call, tensor.payload);
    queued_bytes_ += batch.own_bytes();
    const size_t num_bytes = tensor.apart && !stays ? tensor.payload.num_bytes() : 0;
    for (size_t begin = 0; begin < num_bytes; begin += kTensorPartBytes) {
      const size_t size = std::min(kTensorPartBytes, num_bytes - begin);
      LastBatch().AddPart(call, tensor.payload, begin, size);
    }
  }
  WriteAtEndOfBurst();
}

void PeerStream::WriteAtEndOfBurst() {
  // A step's calls to a peer come within microseconds of each other.
  Defer([self = shared_from_this()] { self->WriteNext(); });
}

void PeerStream::WriteNext() {
  {
    MutexLock lock(mu_);
    if (writing_ || broken_ || read_ended_ || queue_.empty()) return;
    writing_ = true;
    queued_bytes_ -= queue_.front().own_bytes();
    leaving_ = queue_.front().Take();
    queue_.pop_front();
  }
  // Outside the lock: gRPC copies the bytes into the socket here.
  writer_->Write(leaving_, write_.tag());
}

void PeerStream::WriteDone(bool ok) {
  leaving_.Clear();
  bool ended = false, resume = false;
  {
    MutexLock lock(mu_);
    writing_ = false;
    ended = read_ended_;
    resume = paused_ && (!ok || queued_bytes_ <= kMaxQueuedBytes / 2);
    if (resume) paused_ = false;
  }
  if (ended) return DirectionEnded();
  // A failed write means that the stream is over; the read that waits says so.
  if (ok) WriteNext();
  if (resume) reader_->Read(&arriving_, read_.tag());
}

void PeerStream::ReadNext() {
  {
    MutexLock lock(mu_);
    paused_ = queued_bytes_ > kMaxQueuedBytes;
    if (paused_) return;
  }
  reader_->Read(&arriving_, read_.tag());
}

void PeerStream::ReadDone(bool ok) {
  if (ok) {
    fault_ = CatchExceptions([&] { return frames_.Read(&arriving_, *this); });
    if (fault_.ok()) {
      arriving_.Clear();
      // Not before what has arrived is at work: it makes gRPC write an update of the window.
      return poller_.StartBeforeNext([this] { ReadNext(); });
    }
    Cancel();  // nothing sensible can follow what cannot be read
  }
  {
    MutexLock lock(mu_);
    read_ended_ = true;
    if (writing_) return;  // WriteDone goes on
  }
  DirectionEnded();
}

void PeerStream::DirectionEnded() {
  std::shared_ptr<PeerStream> self;  // may be the last reference
  {
    MutexLock lock(mu_);
    if (broken_) return;
    broken_ = true;
    queue_.clear();
    self = std::move(self_);
  }
  OnBroken();
}

}  // namespace tenon
