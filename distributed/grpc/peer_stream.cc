// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/peer_stream.h"

#include "runtime/deferral.h"

namespace tenon {
namespace {

/// A message is closed when it has this much, so that none grows beyond what gRPC can carry.
constexpr size_t kFullMessageBytes = kTensorPartBytes;

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

bool PeerStream::Enqueue(const cluster::PeerFrame& frame) {
  if (broken_) return false;
  // A frame need not wait until the tensors before it have left.
  if (queue_.empty() || queue_.front().num_bytes() >= 2 * kFullMessageBytes) {
    LastBatch().Add(frame);
  } else {
    queue_.front().Add(frame);
  }
  return true;
}

void PeerStream::Send(const cluster::PeerFrame& frame) {
  {
    MutexLock lock(mu_);
    if (!Enqueue(frame)) return;
  }
  if (frame.has_recv_tensor()) {
    // The tensors that this thread sends to other streams go first: somebody waits for those.
    Defer([self = shared_from_this()] { self->WriteSoon(); });
  } else {
    WriteSoon();
  }
}

void PeerStream::SendIdly(const cluster::PeerFrame& frame) {
  {
    MutexLock lock(mu_);
    if (!Enqueue(frame) || std::exchange(alarm_set_, true)) return;
  }
  poller_.PostAfter(kIdleDelay, [self = shared_from_this()] {
    {
      MutexLock lock(self->mu_);
      self->alarm_set_ = false;
    }
    self->WriteNext();
  });
}

void PeerStream::SendTensor(uint64_t call, const EncodedTensor& tensor) {
  {
    MutexLock lock(mu_);
    if (broken_) return;
    LastBatch().AddTensor(call, tensor);
    const size_t num_bytes = tensor.apart ? tensor.payload.num_bytes() : 0;
    for (size_t begin = 0; begin < num_bytes; begin += kTensorPartBytes) {
      const size_t size = std::min(kTensorPartBytes, num_bytes - begin);
      LastBatch().AddPart(call, tensor.payload, begin, size);
    }
  }
  WriteSoon();
}

void PeerStream::WriteSoon() {
  // A step's calls to a peer come within microseconds of each other.
  Defer([self = shared_from_this()] { self->WriteNext(); });
}

void PeerStream::WriteNext() {
  {
    MutexLock lock(mu_);
    if (writing_ || broken_ || read_ended_ || queue_.empty()) return;
    writing_ = true;
    leaving_ = queue_.front().Take();
    queue_.pop_front();
  }
  // Outside the lock: gRPC copies the bytes into the socket here.
  writer_->Write(leaving_, write_.tag());
}

void PeerStream::WriteDone(bool ok) {
  leaving_.Clear();
  bool ended = false;
  {
    MutexLock lock(mu_);
    writing_ = false;
    ended = read_ended_;
  }
  if (ended) return DirectionEnded();
  // A failed write means that the stream is over; the read that waits says so.
  if (ok) WriteNext();
}

void PeerStream::ReadDone(bool ok) {
  if (ok) {
    if (frames_.Read(&arriving_, *this).ok()) {
      arriving_.Clear();
      // Not before what has arrived is at work: it makes gRPC write an update of the window.
      return poller_.StartBeforeNext([this] { reader_->Read(&arriving_, read_.tag()); });
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
