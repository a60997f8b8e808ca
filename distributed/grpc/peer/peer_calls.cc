// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/peer/peer_calls.h"

#include <grpcpp/generic/generic_stub.h>

#include "core/base/exceptions.h"
#include "core/base/hash_map.h"
#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "distributed/grpc/peer/connected_process.h"
#include "distributed/grpc/peer/peer_memory.h"
#include "distributed/grpc/peer/peer_stream.h"
#include "distributed/grpc/rpc/channel.h"
#include "distributed/grpc/rpc/run_graph_coding.h"
#include "distributed/grpc/rpc/security.h"
#include "distributed/grpc/rpc/wire.h"

namespace tenon {
namespace {

/// A stream that breaks at once, as to a task that is not there, is not tried more often than this.
constexpr std::chrono::milliseconds kReopenPause{1000};

/// Tensors with more bytes are copied out of another process's memory by the pool, in pieces of so
/// many: the thread that watches the network does not stay away for longer.
constexpr size_t kCopiedBytes = 1 << 20;
constexpr double kCostOfPiece = 1e5;  // ns

/// A client's step with a larger request goes another way: it would hold up the others, and the
/// server may not take such a message.
constexpr size_t kMostStepBytes = 1 << 20;

/// A call that waits for its answer.
struct PendingCall {
  RunGraphCall* run = nullptr;
  RecvTensorCall* recv = nullptr;
  RunStepResponse* step = nullptr;
  Cancellation* cancellation = nullptr;
  WorkerInterface::Done done;
  Cancellation::Token token = Cancellation::kAlreadyCancelled;

  void End(const Status& status) {
    if (token != Cancellation::kAlreadyCancelled) cancellation->Deregister(token);
    done(status);
  }
};

}  // namespace

/// The calling end of one stream, from its opening to its end. Keeps itself alive in between.
class ClientStream final : public PeerStream, private TensorReceiver {
 public:
  ClientStream(std::shared_ptr<grpc::Channel> channel, Poller& poller,
               const PeerCalls::Named& named, const PeerCalls::OnLoss& on_loss)
      : PeerStream(poller),
        stub_(std::move(channel)),
        poller_(poller),
        named_(named),
        on_loss_(on_loss),
        start_(*this),
        finish_(*this) {}

  void Start(const Credentials& credentials) {
    if (const auto limit = HostMemoryLimit(credentials); limit.ok() && *limit) {
      challenge_ = NewMemoryChallenge();
    }
    static const std::string kMethod = "/tenon.cluster.PeerService/Exchange";
    keep_ = shared_from_this();
    AddToken(credentials, &context_);
    stream_ = stub_.PrepareCall(&context_, kMethod, &poller_.queue());
    stream_->StartCall(start_.tag());
  }

  enum class Phase { kOpening, kReady, kEnded, kUnsupported };
  Phase phase() const { return phase_; }

  /// False when the stream has ended, and `call` untouched. Numbers and sends `frame`.
  bool Call(cluster::PeerFrame& frame, PendingCall& call) {
    PendingCall cancelled;
    {
      MutexLock lock(mu_);
      if (phase_ >= Phase::kEnded) return false;
      const uint64_t id = ++last_call_;
      frame.set_call(id);
      if (call.cancellation != nullptr) {
        call.token = call.cancellation->Register([weak = weak_from_this(), id](const Status& why) {
          const std::shared_ptr<PeerStream> stream = weak.lock();
          if (stream != nullptr) static_cast<ClientStream&>(*stream).GiveUp(id, why);
        });
      }
      if (call.cancellation != nullptr && call.token == Cancellation::kAlreadyCancelled) {
        cancelled = std::move(call);
      } else {
        calls_.emplace(id, std::move(call));
        Enqueue(frame);  // under the lock: GiveUp must not be first
      }
    }
    if (cancelled.done) {
      cancelled.done(cancelled.cancellation->status());
    } else {
      WriteSoon(frame);
    }
    return true;
  }

  void Cancel() override { context_.TryCancel(); }
  /// Waits until every call has ended, or is about to with a tensor that has been copied.
  void WaitForEnd() {
    MutexLock lock(mu_);
    while (!over_ || copying_ > 0) end_.Wait(mu_);
  }
  bool over() {
    MutexLock lock(mu_);
    return over_ && copying_ == 0;
  }

 private:
  struct Started final : Completion {
    explicit Started(ClientStream& stream) : stream(stream) {}
    void Complete(bool ok) override {
      if (ok) {
        stream.Open(stream.stream_.get(), stream.stream_.get());
      } else {
        stream.OnBroken();
      }
    }
    ClientStream& stream;
  };
  struct Finished final : Completion {
    explicit Finished(ClientStream& stream) : stream(stream) {}
    void Complete(bool) override { stream.End(); }
    ClientStream& stream;
  };

  void OnFrame(cluster::PeerFrame frame) override {
    if (frame.has_hello()) return Greet();
    if (frame.has_memory_place()) return OpenMemory(frame.memory_place());
    if (frame.has_socket()) return TakeSocket(frame.socket());
    if (frame.has_moved()) return OtherHasMoved() ? void() : Cancel();
    PendingCall call;
    if (!frame.has_answer() || !Take(frame.call(), &call)) return;
    Abandon(frame.call());
    call.End(ReadAnswer(*frame.mutable_answer(), call));
  }
  TensorReceiver* tensor_receiver() override { return this; }
  Allocator* MemoryFor(uint64_t id) override {
    MutexLock lock(mu_);
    const auto found = calls_.find(id);
    if (found == calls_.end()) return nullptr;
    const RecvTensorCall* const recv = found->second.recv;
    return recv == nullptr ? &CpuAllocator() : recv->memory;
  }
  void OnTensor(uint64_t id, const Status& status, Tensor tensor, bool is_dead) override {
    PendingCall call;
    if (!Take(id, &call)) return;
    if (call.recv == nullptr) return call.End(Internal("a run was answered with a tensor"));
    call.recv->tensor = std::move(tensor);
    call.recv->is_dead = is_dead;
    call.End(status);
  }
  bool OnPlace(uint64_t id, uint64_t address, ArrivingTensor arrived) override {
    if (memory_ == nullptr) return false;
    const bool is_large = arrived.num_bytes > kCopiedBytes;
    {
      MutexLock lock(mu_);
      ++copying_;
    }
    std::function<void()> take = [self = std::static_pointer_cast<ClientStream>(shared_from_this()),
                                  id, address,
                                  arrived = std::make_shared<ArrivingTensor>(std::move(arrived))] {
      self->TakeFromMemory(id, address, *arrived);
    };
    // A tensor does not wait behind kernels, which may wait for it.
    if (!is_large || !poller_.SubmitIfFree(take)) take();
    return true;
  }
  /// Copies a tensor, if somebody waits for it, and says that its bytes need not stay.
  void TakeFromMemory(uint64_t id, uint64_t address, ArrivingTensor& arrived) {
    Status status = arrived.status;
    if (arrived.tensor.valid()) {
      status = CatchExceptions([&] { return Copy(address, &arrived.tensor); });
      if (status.code() == StatusCode::kPermissionDenied) {
        cluster::PeerFrame sent_again;
        sent_again.set_reads_memory(false);
        Send(sent_again);
      }
      if (!status.ok()) {
        arrived.tensor = Tensor();
        status = named_(grpc::Status(grpc::StatusCode::UNAVAILABLE, std::string(Message(status))));
      }
    }
    {
      // The end of the call may wait for the end of the stream, which waits for this copy.
      MutexLock lock(mu_);
      --copying_;
      end_.NotifyAll();
    }
    if (arrived.tensor.valid() || !status.ok()) {
      OnTensor(id, status, std::move(arrived.tensor), arrived.is_dead);
    }
    cluster::PeerFrame taken;
    taken.set_call(id);
    taken.set_taken(true);
    Send(taken);
  }
  Status Copy(uint64_t address, Tensor* tensor) const {
    const auto bytes = static_cast<int64_t>(tensor->num_bytes());
    const auto piece = static_cast<int64_t>(kCopiedBytes);
    auto* const to = static_cast<char*>(tensor->raw_data());
    const InterruptibleBy nothing(nullptr);
    Mutex mu;
    Status status;
    ParallelFor((bytes + piece - 1) / piece, kCostOfPiece, [&](int64_t begin, int64_t end) {
      const int64_t from = begin * piece, size = std::min(end * piece, bytes) - from;
      const Status read = memory_->Read(address + static_cast<uint64_t>(from), to + from,
                                        static_cast<size_t>(size));
      MutexLock lock(mu);
      status.Update(read);
    });
    NormaliseBools(*tensor, 0, tensor->num_bytes());
    return status;
  }
  void Greet() {
    {
      MutexLock lock(mu_);
      if (phase_ == Phase::kReady) return;
      phase_ = Phase::kReady;
      was_ready_ = true;
    }
    if (challenge_.empty()) return;
    cluster::PeerFrame frame;
    frame.set_memory_challenge(challenge_);
    Send(frame);
  }
  void OpenMemory(const cluster::PeerMemoryPlace& place) {
    // The look at the system takes time: a stream has one.
    const std::string challenge = std::exchange(challenge_, "");
    if (challenge.empty() || !IsConnectedTo(place.process(), context_.peer())) return;
    memory_ = PeerMemory::Open(place, challenge);
    if (memory_ == nullptr) return;
    cluster::PeerFrame frame;
    frame.set_reads_memory(true);
    Send(frame);
    frame.set_memory_proof(memory_->ReadProof());
    Send(frame);
  }
  void TakeSocket(const cluster::PeerSocket& socket) {
    if (memory_ == nullptr) return;
    cluster::PeerFrame frame;
    frame.set_moved(true);
    OwnedFile own = memory_->TakeSocket(socket);
    if (own.valid() && KeepSocket(std::move(own)) && Move(frame)) return;
    frame.set_moved(false);
    Send(frame);
  }
  static Status ReadAnswer(cluster::PeerAnswer& answer, const PendingCall& call) {
    if (answer.code() != 0) return Status(static_cast<StatusCode>(answer.code()), answer.message());
    if (call.step != nullptr) {
      if (!answer.has_ran_step()) return Internal("a RunStep was answered with something else");
      call.step->Swap(answer.mutable_ran_step());
      return OkStatus();
    }
    if (call.run != nullptr) return ReadRunGraphResponse(answer.ran_graph(), call.run);
    return ReadTensorResponse(answer.received(), &call.recv->tensor, &call.recv->is_dead);
  }

  /// Takes the call off the list; false when it has ended in another way.
  bool Take(uint64_t id, PendingCall* call) {
    MutexLock lock(mu_);
    const auto found = calls_.find(id);
    if (found == calls_.end()) return false;
    *call = std::move(found->second);
    calls_.erase(found);
    return true;
  }

  void GiveUp(uint64_t id, const Status& why) {
    PendingCall call;
    if (!Take(id, &call)) return;
    cluster::PeerFrame frame;
    frame.set_call(id);
    frame.set_cancel(true);
    Send(frame);
    // Not here, inside Cancel: the end of the call may destroy the Cancellation.
    poller_.Post([self = std::static_pointer_cast<ClientStream>(shared_from_this()), id, call,
                  why]() mutable {
      self->Abandon(id);
      call.End(why);
    });
  }

  void OnBroken() override { stream_->Finish(&status_, finish_.tag()); }

  void End() {
    const std::shared_ptr<PeerStream> keep = std::move(keep_);
    flat_hash_map<uint64_t, PendingCall> calls;
    {
      MutexLock lock(mu_);
      phase_ = status_.error_code() == grpc::StatusCode::UNIMPLEMENTED ? Phase::kUnsupported
                                                                       : Phase::kEnded;
      calls.swap(calls_);
    }
    const Status error = Error();
    for (auto& [id, call] : calls) call.End(error);
    if (was_ready_) on_loss_(error);
    MutexLock lock(mu_);
    over_ = true;
    end_.NotifyAll();
  }

  Status Error() const {
    if (!fault().ok())
      return named_(grpc::Status(grpc::StatusCode::UNAVAILABLE, std::string(Message(fault()))));
    return named_(grpc::Status(grpc::StatusCode::UNAVAILABLE, status_.error_message().empty()
                                                                  ? "the connection has ended"
                                                                  : status_.error_message()));
  }

  grpc::GenericStub stub_;
  Poller& poller_;
  const PeerCalls::Named& named_;
  const PeerCalls::OnLoss& on_loss_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  Started start_;
  Finished finish_;
  grpc::Status status_;
  std::shared_ptr<PeerStream> keep_;
  std::atomic<Phase> phase_{Phase::kOpening};  // written under mu_
  bool was_ready_ = false;                     // the poller's
  std::string challenge_;                      // empty where the task's memory is not wanted now
  std::unique_ptr<PeerMemory> memory_;         // null where it cannot be read; set once
  Mutex mu_;
  CondVar end_;
  bool over_ ABSL_GUARDED_BY(mu_) = false;
  int copying_ ABSL_GUARDED_BY(mu_) = 0;  // tensors that are taken out of the other's memory
  uint64_t last_call_ ABSL_GUARDED_BY(mu_) = 0;
  flat_hash_map<uint64_t, PendingCall> calls_ ABSL_GUARDED_BY(mu_);
};

PeerCalls::PeerCalls(std::string address, const Credentials& credentials, Poller& poller,
                     Named named, OnLoss on_loss)
    : address_(std::move(address)),
      credentials_(credentials),
      poller_(poller),
      named_(std::move(named)),
      on_loss_(std::move(on_loss)) {}

PeerCalls::~PeerCalls() = default;

std::shared_ptr<ClientStream> PeerCalls::Current() {
  using Phase = ClientStream::Phase;
  MutexLock lock(mu_);
  if (stream_ != nullptr) {
    const Phase phase = stream_->phase();
    if (phase == Phase::kReady) return stream_;
    if (phase == Phase::kOpening || phase == Phase::kUnsupported) return nullptr;
  }
  const Clock::Time now = poller_.clock().Now();
  if (closed_ || (stream_ != nullptr && now - opened_ < kReopenPause)) return nullptr;
  // A connection of its own: unary calls on it would bring gRPC's other threads to read from it.
  if (channel_ == nullptr) channel_ = OpenChannel(address_, credentials_, Keepalive::kFrequent);
  opened_ = now;
  std::erase_if(earlier_, [](const auto& s) { return s->over(); });
  if (stream_ != nullptr) earlier_.push_back(std::move(stream_));
  stream_ = std::make_shared<ClientStream>(channel_, poller_, named_, on_loss_);
  stream_->Start(credentials_);
  return nullptr;
}

bool PeerCalls::RunGraph(RunGraphCall* call, Cancellation* cancellation,
                         WorkerInterface::Done& done) {
  const std::shared_ptr<ClientStream> stream = Current();
  cluster::PeerFrame frame;
  // What cannot be written is left to the other way, which says why.
  if (stream == nullptr || !WriteRunGraphRequest(*call, frame.mutable_run_graph()).ok() ||
      frame.ByteSizeLong() > kMaxMessageBytes) {
    return false;
  }
  PendingCall pending{.run = call, .cancellation = cancellation, .done = std::move(done)};
  if (stream->Call(frame, pending)) return true;
  done = std::move(pending.done);
  return false;
}

bool PeerCalls::RecvTensor(RecvTensorCall* call, Cancellation* cancellation,
                           WorkerInterface::Done& done) {
  const std::shared_ptr<ClientStream> stream = Current();
  if (stream == nullptr) return false;
  cluster::PeerFrame frame;
  frame.mutable_recv_tensor()->set_step_id(call->step_id);
  frame.mutable_recv_tensor()->set_rendezvous_key(call->key);
  PendingCall pending{.recv = call, .cancellation = cancellation, .done = std::move(done)};
  if (stream->Call(frame, pending)) return true;
  done = std::move(pending.done);
  return false;
}

bool PeerCalls::RunStep(RunStepRequest& request, RunStepResponse* response,
                        WorkerInterface::Done& done) {
  const std::shared_ptr<ClientStream> stream = Current();
  if (stream == nullptr || request.ByteSizeLong() > kMostStepBytes) return false;
  cluster::PeerFrame frame;
  frame.mutable_run_step()->Swap(&request);
  PendingCall pending{.step = response, .done = std::move(done)};
  if (stream->Call(frame, pending)) return true;
  frame.mutable_run_step()->Swap(&request);
  done = std::move(pending.done);
  return false;
}

bool PeerCalls::CleanupGraph(const CleanupGraphRequest& request) {
  const std::shared_ptr<ClientStream> stream = Current();
  if (stream == nullptr) return false;
  cluster::PeerFrame frame;
  *frame.mutable_cleanup_graph() = request;
  stream->SendIdly(frame);
  return true;
}

void PeerCalls::Disconnect() {
  std::vector<std::shared_ptr<ClientStream>> streams;
  {
    MutexLock lock(mu_);
    closed_ = true;
    streams = earlier_;  // they may be about to end
    if (stream_ != nullptr) streams.push_back(stream_);
  }
  for (const auto& stream : streams) stream->Cancel();
  for (const auto& stream : streams) stream->WaitForEnd();
}

}  // namespace tenon
