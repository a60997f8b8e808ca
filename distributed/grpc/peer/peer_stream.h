// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/async_stream.h>

#include <deque>
#include <memory>

#include "core/base/mutex.h"
#include "distributed/grpc/peer/peer_frames.h"
#include "distributed/grpc/rpc/poller.h"

namespace tenon {

/// One end of PeerService's stream: writes what is sent, as many frames a message as have come
/// together in the sender's DeferralScope or while the message before was on its way, and gives
/// what arrives to OnFrame and OnTensor. Frames overtake the parts of large tensors. Kept alive by
/// its own running operations. Sending is thread-safe.
class PeerStream : public FrameReceiver, public std::enable_shared_from_this<PeerStream> {
 public:
  /// The poller outlives the operations.
  explicit PeerStream(Poller& poller) : poller_(poller), read_(*this), write_(*this) {}
  virtual ~PeerStream() = default;
  PeerStream(const PeerStream&) = delete;
  PeerStream& operator=(const PeerStream&) = delete;

  /// Frames sent to a broken stream are dropped: its calls fail by OnBroken. Calls and answers may
  /// overtake tensors; what cancels or cleans up a call never overtakes it.
  void Send(const cluster::PeerFrame& frame) {
    Enqueue(frame);
    WriteSoon(frame);
  }
  /// `stays`: the tensor's bytes, which are apart, stay in memory until the other end has them.
  void SendTensor(uint64_t call, const EncodedTensor& tensor, bool stays = false);
  /// Sends `frame`, which nobody waits for, together with what is sent next, or within 50 ms.
  void SendIdly(const cluster::PeerFrame& frame);

 protected:
  using Reader = grpc::internal::AsyncReaderInterface<grpc::ByteBuffer>;
  using Writer = grpc::internal::AsyncWriterInterface<grpc::ByteBuffer>;

  /// Starts reading, and writing what has been sent before. Both outlive the stream's operations.
  void Open(Reader* reader, Writer* writer);
  /// The stream has ended; no operation runs. Called once, after Open, by the poller.
  virtual void OnBroken() = 0;
  /// Ends the stream at once, from any thread.
  virtual void Cancel() = 0;
  /// The two halves of Send: a subclass may do the first under a lock of its own.
  void Enqueue(const cluster::PeerFrame& frame);
  void WriteSoon(const cluster::PeerFrame& frame);
  /// Why this end has broken the stream, in OnBroken; OK when it has not.
  const Status& fault() const { return fault_; }

 private:
  struct Read final : Completion {
    explicit Read(PeerStream& stream) : stream(stream) {}
    void Complete(bool ok) override { stream.ReadDone(ok); }
    PeerStream& stream;
  };
  struct Write final : Completion {
    explicit Write(PeerStream& stream) : stream(stream) {}
    void Complete(bool ok) override { stream.WriteDone(ok); }
    PeerStream& stream;
  };

  /// False when the stream is broken.
  bool Append(const cluster::PeerFrame& frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  FrameBatch& LastBatch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Writes what is in the queue when this thread's burst is over.
  void WriteAtEndOfBurst();
  /// Starts the next read, unless the other side does not take what is sent to it.
  void ReadNext();
  /// Writes the next message unless one is on its way.
  void WriteNext();
  void ReadDone(bool ok);
  void WriteDone(bool ok);
  /// One of the two directions has ended.
  void DirectionEnded();

  Poller& poller_;
  Reader* reader_ = nullptr;
  Writer* writer_ = nullptr;
  Read read_;
  Write write_;
  grpc::ByteBuffer arriving_;
  FrameReader frames_;
  Status fault_;
  grpc::ByteBuffer leaving_;
  Mutex mu_;
  std::deque<FrameBatch> queue_ ABSL_GUARDED_BY(mu_);
  size_t queued_bytes_ ABSL_GUARDED_BY(mu_) = 0;  // of their own, without those of tensors
  bool writing_ ABSL_GUARDED_BY(mu_) = true;      // until Open
  bool alarm_set_ ABSL_GUARDED_BY(mu_) = false;   // for what was sent idly
  bool paused_ ABSL_GUARDED_BY(mu_) = false;      // nothing is read until the queue is shorter
  bool read_ended_ ABSL_GUARDED_BY(mu_) = false;
  bool broken_ ABSL_GUARDED_BY(mu_) = false;
  std::shared_ptr<PeerStream> self_ ABSL_GUARDED_BY(mu_);  // from Open to OnBroken
};

}  // namespace tenon
