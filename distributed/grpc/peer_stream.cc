// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/peer_stream.h"

namespace tenon {
namespace {

/// A message is closed when it has this much, so that none grows beyond what gRPC can carry.
constexpr size_t kFullMessageBytes = kTensorPartBytes;

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

void PeerStream::Send(const cluster::PeerFrame& frame) {
  MutexLock lock(mu_);
  if (broken_) return;
  // A frame need not wait until the tensors before it have left.
  if (queue_.empty() || queue_.front().num_bytes() >= 2 * kFullMessageBytes) {
    LastBatch().Add(frame);
  } else {
    queue_.front().Add(frame);
  }
  WriteSoon();
}

void PeerStream::SendTensor(uint64_t call, const EncodedTensor& tensor) {
  MutexLock lock(mu_);
  if (broken_) return;
  LastBatch().AddTensor(call, tensor);
  const size_t num_bytes = tensor.apart ? tensor.payload.num_bytes() : 0;
  for (size_t begin = 0; begin < num_bytes; begin += kTensorPartBytes) {
    LastBatch().AddPart(call, tensor.payload, begin, std::min(kTensorPartBytes, num_bytes - begin));
  }
  WriteSoon();
}

void PeerStream::WriteSoon() {
  // A step's calls to a peer come within microseconds of each other. Written here, the first would
  // make a message of its own, and its end would wake the poller's thread all the same.
  if (writing_ || write_posted_) return;
  write_posted_ = true;
  poller_.Post([self = shared_from_this()] {
    {
      MutexLock lock(self->mu_);
      self->write_posted_ = false;
    }
    self->WriteNext();
  });
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
      reader_->Read(&arriving_, read_.tag());
      return;
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
