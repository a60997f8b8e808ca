// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/async_stream.h>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "core/base/mutex.h"
#include "distributed/grpc/peer/local_socket.h"
#include "distributed/grpc/peer/peer_frames.h"
#include "distributed/grpc/polling/poller.h"

namespace tenon {

/// One end of PeerService's stream: writes what is sent, as many frames a message as have come
/// together in the sender's DeferralScope or while the message before was on its way, and gives
/// what arrives to OnFrame and OnTensor. Frames overtake the parts of large tensors. Kept alive by
/// its own running operations, until OnBroken. Sending is thread-safe.
///
/// Two tasks of one host may move to a socket, where a message takes a tenth of the time that gRPC
/// takes: each side says when it has, with the last message that it writes on the stream. The
/// stream stays open and says when it is over.
class PeerStream : public FrameReceiver, public std::enable_shared_from_this<PeerStream> {
 public:
  /// The poller outlives the operations. Nothing is read while more than `most_queued` bytes wait
  /// to be written, those of shared tensors not counted; of two ends only one may have such a
  /// limit, or each could wait for the other.
  explicit PeerStream(Poller& poller, size_t most_queued = SIZE_MAX)
      : poller_(poller), most_queued_(most_queued), read_(*this), write_(*this) {}
  virtual ~PeerStream() = default;
  PeerStream(const PeerStream&) = delete;
  PeerStream& operator=(const PeerStream&) = delete;

  /// Whether what was sent is still here. A stream that has broken has nothing.
  bool HasUnwritten();
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

  /// The frames that have come together follow.
  virtual void OnTurn() {}
  /// Starts reading, and writing what has been sent before. Both outlive the stream's operations.
  void Open(Reader* reader, Writer* writer);
  /// The stream has ended; no operation runs. Called once, after Open, by the poller.
  virtual void OnBroken() = 0;
  /// Ends the stream at once, from any thread.
  virtual void Cancel() = 0;
  /// Keeps a socket for the stream to move to, through which messages of up to `most_bytes` may
  /// come. False when the system does not watch it. This and what follows are for OnFrame.
  bool KeepSocket(OwnedFile socket, size_t most_bytes = INT_MAX);
  /// The stream does not move after all. REQUIRES: it has not.
  void DropSocket();
  /// Has the stream move: `last`, which says so, goes with its last message. False, and nothing is
  /// sent, where there is no socket or it has moved before.
  bool Move(const cluster::PeerFrame& last);
  /// The other end has said that it has moved: what follows is read from the socket. False where
  /// there is none, or it has said so before.
  bool OtherHasMoved();
  /// The two halves of Send: a subclass may do the first under a lock of its own.
  void Enqueue(const cluster::PeerFrame& frame);
  void WriteSoon(const cluster::PeerFrame& frame);
  /// Frees what has come of the tensor that answers `call`, which has ended. The poller's.
  void Abandon(uint64_t call) { frames_.Abandon(call); }
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

  /// A message that is to be written.
  struct Outgoing {
    FrameBatch batch;
    bool is_last = false;  // on the stream: what follows goes through the socket
  };

  /// Adds a frame to the message that is returned; null when the stream is broken.
  Outgoing* Append(const cluster::PeerFrame& frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// The message that what follows goes into, a frame of so many bytes.
  FrameBatch& LastBatch(size_t frame_bytes = 0) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Writes what is in the queue when this thread's burst is over.
  void WriteAtEndOfBurst();
  /// Starts the next read, unless the other side does not take what is sent to it.
  void ReadNext();
  /// Writes the next messages unless one is on its way.
  void WriteNext();
  void ReadDone(bool ok);
  void WriteDone(bool ok);
  /// A message has been written, or never will be. Whether the stream has ended meanwhile.
  bool Written(bool ok);

  void SocketReady(bool readable, bool writable);
  /// Whether there may be more to read.
  bool ReadSocket();
  /// Begins with `message`, or goes on with the last one where there is none. Whether the next one
  /// can be written.
  bool WriteSocket(const grpc::ByteBuffer* message);
  /// The end of the stream follows.
  void SocketEnded(const Status& why);
  bool AddSocket();
  /// Has the poller say what is waited for.
  void WatchSocket() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// One of the two directions has ended.
  void DirectionEnded();

  Poller& poller_;
  const size_t most_queued_;
  Reader* reader_ = nullptr;
  Writer* writer_ = nullptr;
  Read read_;
  Write write_;
  grpc::ByteBuffer arriving_;
  FrameReader frames_;
  Status fault_;
  grpc::ByteBuffer leaving_;
  /// Changed in the poller's turn, while nobody writes.
  std::unique_ptr<LocalSocket> socket_;
  bool is_moving_ = false;  // Move has been called; the poller's
  Mutex mu_;
  std::deque<Outgoing> queue_ ABSL_GUARDED_BY(mu_);
  size_t queued_bytes_ ABSL_GUARDED_BY(mu_) = 0;  // of their own, without those of tensors
  bool writing_ ABSL_GUARDED_BY(mu_) = true;      // until Open
  bool alarm_set_ ABSL_GUARDED_BY(mu_) = false;   // for what was sent idly
  bool paused_ ABSL_GUARDED_BY(mu_) = false;      // nothing is read until the queue is shorter
  bool read_ended_ ABSL_GUARDED_BY(mu_) = false;
  bool moved_ ABSL_GUARDED_BY(mu_) = false;          // the next message goes through the socket
  bool awaits_room_ ABSL_GUARDED_BY(mu_) = false;    // a part of a message is in the socket
  bool other_moved_ ABSL_GUARDED_BY(mu_) = false;    // messages come through the socket
  uint64_t socket_number_ ABSL_GUARDED_BY(mu_) = 0;  // in poller_.sockets(); 0: not there
  bool broken_ ABSL_GUARDED_BY(mu_) = false;
  std::shared_ptr<PeerStream> self_ ABSL_GUARDED_BY(mu_);  // from Open to OnBroken
};

}  // namespace tenon
