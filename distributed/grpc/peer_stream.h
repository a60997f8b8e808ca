// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/async_stream.h>

#include <deque>
#include <memory>

#include "core/mutex.h"
#include "distributed/grpc/peer_frames.h"
#include "distributed/grpc/poller.h"

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

  /// Frames sent to a broken stream are dropped: its calls fail by OnBroken.
  void Send(const cluster::PeerFrame& frame);
  void SendTensor(uint64_t call, const EncodedTensor& tensor);
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
  bool Enqueue(const cluster::PeerFrame& frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  FrameBatch& LastBatch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Writes what is in the queue when this thread's burst is over.
  void WriteSoon();
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
  grpc::ByteBuffer leaving_;
  Mutex mu_;
  std::deque<FrameBatch> queue_ ABSL_GUARDED_BY(mu_);
  bool writing_ ABSL_GUARDED_BY(mu_) = true;  // until Open
  bool alarm_set_ ABSL_GUARDED_BY(mu_) = false;  // for what was sent idly
  bool read_ended_ ABSL_GUARDED_BY(mu_) = false;
  bool broken_ ABSL_GUARDED_BY(mu_) = false;
  std::shared_ptr<PeerStream> self_ ABSL_GUARDED_BY(mu_);  // from Open to OnBroken
};

}  // namespace tenon
