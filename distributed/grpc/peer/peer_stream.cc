// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/peer/peer_stream.h"

#include "core/base/exceptions.h"
#include "runtime/device/deferral.h"

namespace tenon {
namespace {

/// A message is closed when it has this much.
constexpr size_t kFullMessageBytes = kTensorPartBytes;

/// No message has more, of several frames: a peer may not take larger ones. A frame of more is a
/// message of its own.
constexpr size_t kMostMessageBytes = 2 * kFullMessageBytes;

constexpr std::chrono::milliseconds kIdleDelay{50};

/// A socket is read in so many pieces at most when the stream has ended: it holds fewer.
constexpr int kMostReadAtEnd = 100;

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

FrameBatch& PeerStream::LastBatch(size_t frame_bytes) {
  const size_t num_bytes = queue_.empty() ? 0 : queue_.back().batch.num_bytes();
  if (queue_.empty() || num_bytes >= kFullMessageBytes ||
      (num_bytes > 0 && num_bytes + frame_bytes > kMostMessageBytes)) {
    queue_.emplace_back();
  }
  return queue_.back().batch;
}

PeerStream::Outgoing* PeerStream::Append(const cluster::PeerFrame& frame) {
  if (broken_) return nullptr;
  // A frame need not wait until the tensors before it have left, but what ends a call must not come
  // before the call.
  const bool ends_call = frame.content_case() == cluster::PeerFrame::kCancel ||
                         frame.content_case() == cluster::PeerFrame::kCleanupGraph;
  const size_t num_bytes = frame.ByteSizeLong();
  const bool at_end = ends_call || queue_.empty() ||
                      queue_.front().batch.num_bytes() + num_bytes > kMostMessageBytes;
  if (at_end) LastBatch(num_bytes);
  Outgoing& message = at_end ? queue_.back() : queue_.front();
  queued_bytes_ -= message.batch.own_bytes();
  message.batch.Add(frame);
  queued_bytes_ += message.batch.own_bytes();
  return &message;
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
    if (Append(frame) == nullptr || std::exchange(alarm_set_, true)) return;
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

bool PeerStream::HasUnwritten() {
  MutexLock lock(mu_);
  return !broken_ && !read_ended_ && (writing_ || !queue_.empty());
}

void PeerStream::WriteAtEndOfBurst() {
  // A step's calls to a peer come within microseconds of each other.
  Defer([self = shared_from_this()] { self->WriteNext(); });
}

void PeerStream::WriteNext() {
  bool by_socket = false;
  do {
    {
      MutexLock lock(mu_);
      if (writing_ || broken_ || read_ended_ || queue_.empty()) return;
      writing_ = true;
      queued_bytes_ -= queue_.front().batch.own_bytes();
      leaving_ = queue_.front().batch.Take();
      by_socket = moved_;
      moved_ = moved_ || queue_.front().is_last;
      queue_.pop_front();
    }
    // Outside the lock: the system copies the bytes here.
    if (!by_socket) return writer_->Write(leaving_, write_.tag());
  } while (WriteSocket(&leaving_));
}

void PeerStream::WriteDone(bool ok) {
  if (Written(ok)) return DirectionEnded();
  // A failed write means that the stream is over; the read that waits says so.
  if (ok) WriteNext();
}

bool PeerStream::Written(bool ok) {
  leaving_.Clear();
  {
    MutexLock lock(mu_);
    writing_ = false;
    if (read_ended_) return true;
    if (!paused_ || (ok && queued_bytes_ > most_queued_ / 2)) return false;
    paused_ = false;
    if (other_moved_) {
      WatchSocket();
      return false;
    }
  }
  reader_->Read(&arriving_, read_.tag());
  return false;
}

void PeerStream::ReadNext() {
  {
    MutexLock lock(mu_);
    // A stream that has moved is read for its end.
    if (!other_moved_) {
      paused_ = queued_bytes_ > most_queued_;
      if (paused_) return;
    }
  }
  reader_->Read(&arriving_, read_.tag());
}

void PeerStream::ReadDone(bool ok) {
  if (ok) {
    bool is_late = false;
    {
      MutexLock lock(mu_);
      is_late = other_moved_;
    }
    fault_ = is_late ? InvalidArgument("a message on a stream that has moved to a socket")
                     : CatchExceptions([&] {
                         OnTurn();
                         return frames_.Read(&arriving_, *this);
                       });
    if (fault_.ok()) {
      arriving_.Clear();
      // Not before what has arrived is at work: it makes gRPC write an update of the window.
      return poller_.StartBeforeNext([this] { ReadNext(); });
    }
    Cancel();  // nothing sensible can follow what cannot be read
  }
  // The socket may hold what the other end has written before it ended the stream.
  for (int i = 0; !ok && i < kMostReadAtEnd && ReadSocket(); ++i) {
  }
  {
    MutexLock lock(mu_);
    read_ended_ = true;
    if (std::exchange(awaits_room_, false)) writing_ = false;
    if (writing_) return;  // whoever writes goes on
  }
  DirectionEnded();
}

bool PeerStream::AddSocket() {
  const uint64_t number = poller_.sockets().Add(
      socket_->number(), [this](bool readable, bool writable) { SocketReady(readable, writable); });
  MutexLock lock(mu_);
  socket_number_ = number;
  return number != 0;
}

bool PeerStream::KeepSocket(OwnedFile socket, size_t most_bytes) {
  if (socket_ != nullptr) return false;
  socket_ = std::make_unique<LocalSocket>(std::move(socket), most_bytes);
  if (!AddSocket()) socket_.reset();
  return socket_ != nullptr;
}

void PeerStream::DropSocket() {
  {
    MutexLock lock(mu_);
    poller_.sockets().Remove(std::exchange(socket_number_, 0));
  }
  socket_.reset();
}

bool PeerStream::Move(const cluster::PeerFrame& last) {
  if (socket_ == nullptr || std::exchange(is_moving_, true)) return false;
  {
    MutexLock lock(mu_);
    if (Outgoing* const message = Append(last)) message->is_last = true;
  }
  WriteSoon(last);
  return true;
}

bool PeerStream::OtherHasMoved() {
  bool is_watched = false;
  {
    MutexLock lock(mu_);
    if (socket_ == nullptr || other_moved_) return false;
    other_moved_ = true;
    is_watched = socket_number_ != 0;
  }
  if (!is_watched && !AddSocket()) return false;
  // The poller has its turn after the rest of this message.
  MutexLock lock(mu_);
  WatchSocket();
  return true;
}

void PeerStream::WatchSocket() {
  poller_.sockets().SetReads(socket_number_, other_moved_ && !paused_);
  poller_.sockets().SetWrites(socket_number_, awaits_room_);
}

void PeerStream::SocketReady(bool readable, bool writable) {
  bool reads = false, writes = false;
  {
    MutexLock lock(mu_);
    reads = other_moved_;
    writes = writable && std::exchange(awaits_room_, false);
    if (writes) WatchSocket();
  }
  if (writes && WriteSocket(nullptr)) WriteNext();
  if (!readable) return;
  if (reads) {
    ReadSocket();
    return;
  }
  // The socket has ended, which is said unasked. What is in it comes after what is on the stream.
  MutexLock lock(mu_);
  poller_.sockets().Remove(std::exchange(socket_number_, 0));
}

bool PeerStream::ReadSocket() {
  {
    MutexLock lock(mu_);
    if (!other_moved_ || !fault_.ok()) return false;
  }
  bool more = false;
  OnTurn();
  const Status read = CatchExceptions([&]() -> Status {
    TENON_ASSIGN_OR_RETURN(more, socket_->Read([&](std::string_view message) {
      return frames_.Read(message, *this);
    }));
    return OkStatus();
  });
  if (!read.ok()) {
    SocketEnded(read);
    return false;
  }
  MutexLock lock(mu_);
  paused_ = queued_bytes_ > most_queued_;
  if (paused_) WatchSocket();
  return more;
}

bool PeerStream::WriteSocket(const grpc::ByteBuffer* message) {
  const StatusOr<bool> written = socket_->Write(message);
  if (written.ok() && !*written) {
    MutexLock lock(mu_);
    awaits_room_ = !read_ended_;
    if (awaits_room_) {
      WatchSocket();
      return false;
    }
  }
  if (!written.ok()) Cancel();
  if (!Written(written.ok())) return written.ok();
  // In turn with all else that the poller does: this may be any thread.
  poller_.Post([self = shared_from_this()] { self->DirectionEnded(); });
  return false;
}

void PeerStream::SocketEnded(const Status& why) {
  fault_ = why;
  {
    MutexLock lock(mu_);
    poller_.sockets().Remove(std::exchange(socket_number_, 0));
  }
  Cancel();
}

void PeerStream::DirectionEnded() {
  std::shared_ptr<PeerStream> self;  // may be the last reference
  {
    MutexLock lock(mu_);
    if (broken_) return;
    broken_ = true;
    queue_.clear();
    self = std::move(self_);
    if (socket_ != nullptr) poller_.sockets().Remove(socket_number_);
  }
  socket_.reset();
  frames_ = {};  // the tensors of which only the beginning has come
  OnBroken();
}

}  // namespace tenon
