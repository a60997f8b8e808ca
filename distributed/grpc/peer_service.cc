// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/peer_service.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <optional>
#include <string_view>

#include "core/base/exceptions.h"
#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "distributed/grpc/peer/connected_process.h"
#include "distributed/grpc/peer/left_tensors.h"
#include "distributed/grpc/peer/local_socket.h"
#include "distributed/grpc/peer/peer_memory.h"
#include "distributed/grpc/peer/peer_stream.h"
#include "distributed/grpc/rpc/run_graph_coding.h"
#include "distributed/grpc/rpc/status.h"
#include "distributed/grpc/rpc/wire.h"
#include "distributed/worker/run_table.h"
#include "runtime/device/machine_clock.h"

namespace tenon {
namespace {

/// The steps of one caller that may be there: not all of a task's.
constexpr size_t kMostSteps = RunTable::kMaxRuns / 4;

/// A client that has so many steps on their way on one stream gets errors.
constexpr size_t kMostClientSteps = 1 << 16;

/// The steps of one turn that are not started by then are left to the pool: one message may have
/// hundreds of thousands, and the poller has others to look after.
constexpr std::chrono::milliseconds kLongestTurn{1};

/// With more bytes of answers waiting nothing is read: who sends calls and does not take the
/// answers must not fill the memory with them.
constexpr size_t kMostQueued = 64 << 20;

/// A call that is being answered.
struct ServedCall {
  RunGraphCall run;
  RecvTensorCall recv;
  Cancellation cancellation;
};

/// The answering end of one stream.
class ServerStream final : public PeerStream {
 public:
  /// `left_above`: tensors with more bytes may be left for the caller to copy. Messages of more
  /// than `most_bytes` are not read.
  ServerStream(std::shared_ptr<ServedRpc> rpc, Poller& poller, WorkerInterface& worker,
               StepRunner& steps, std::optional<size_t> left_above, int64_t most_bytes)
      : PeerStream(poller, kMostQueued),
        rpc_(std::move(rpc)),
        worker_(worker),
        client_steps_(steps),
        left_above_(left_above),
        most_bytes_(std::clamp<int64_t>(most_bytes, 1, INT_MAX)) {}

  void Start(const std::string& task) {
    cluster::PeerFrame hello;
    hello.mutable_hello()->set_task(task);
    Send(hello);
    // Clients are to learn why their steps have ended.
    rpc_->AwaitBeforeShutdown([weak = weak_from_this()] {
      const std::shared_ptr<PeerStream> stream = weak.lock();
      return stream != nullptr &&
             (static_cast<ServerStream&>(*stream).running_steps_ > 0 || stream->HasUnwritten());
    });
    Open(&rpc_->stream(), &rpc_->stream());
  }
  void Cancel() override { rpc_->Cancel(); }

 private:
  std::shared_ptr<ServerStream> Self() {
    return std::static_pointer_cast<ServerStream>(shared_from_this());
  }

  void OnTurn() override { turn_began_.reset(); }
  void OnFrame(cluster::PeerFrame frame) override {
    const uint64_t id = frame.call();
    switch (frame.content_case()) {
      case cluster::PeerFrame::kRunGraph:
        return RunGraph(id, frame.run_graph());
      case cluster::PeerFrame::kRecvTensor:
        return RecvTensor(id, frame.recv_tensor());
      case cluster::PeerFrame::kRunStep:
        return RunStep(id, frame.run_step());
      case cluster::PeerFrame::kCleanupGraph:
        return CleanUp(frame.cleanup_graph());
      case cluster::PeerFrame::kCancel:
        return CancelCall(id);
      case cluster::PeerFrame::kMemoryChallenge:
        return Show(frame.memory_challenge());
      case cluster::PeerFrame::kReadsMemory:
        reads_memory_ = frame.reads_memory() && shown_.has_value();
        return;
      case cluster::PeerFrame::kMemoryProof:
        return OfferSocket(frame.memory_proof());
      case cluster::PeerFrame::kMoved:
        return CallerMoves(frame.moved());
      case cluster::PeerFrame::kTaken:
        return left_.Drop(id);
      default: {
        const std::shared_ptr<ServedCall> call = NewCall(id);
        if (call == nullptr) return Cancel();
        return Answer(id, call, InvalidArgument("a frame of a kind that is not known"), nullptr);
      }
    }
  }
  /// Null when the caller has used the number already.
  std::shared_ptr<ServedCall> NewCall(uint64_t id) {
    auto call = std::make_shared<ServedCall>();
    MutexLock lock(mu_);
    return calls_.emplace(id, call).second ? call : nullptr;
  }

  void RunGraph(uint64_t id, const RunGraphRequest& request) {
    const std::shared_ptr<ServedCall> call = NewCall(id);
    if (call == nullptr) return Cancel();
    if (Status s = ReadRunGraphRequest(request, worker_.arrival_memory(), &call->run); !s.ok()) {
      return Answer(id, call, s, nullptr);
    }
    bool too_many = false;
    {
      // Also of runs that will be refused: one that is not may come first to who cleans up.
      MutexLock lock(mu_);
      too_many = steps_.size() >= kMostSteps && !steps_.contains(request.step_id());
      if (!too_many) steps_.insert(request.step_id());
    }
    if (too_many) {
      return Answer(id, call,
                    ResourceExhausted("the caller has ", kMostSteps,
                                      " steps that it has not cleaned up, as many as it may"),
                    nullptr);
    }
    worker_.RunGraphAsync(&call->run, &call->cancellation, [self = Self(), id, call](Status s) {
      cluster::PeerFrame frame;
      s = CatchExceptions([&] {
        return WriteRunGraphResponse(std::move(s), true, &call->run,
                                     frame.mutable_answer()->mutable_ran_graph());
      });
      self->Answer(id, call, s, &frame);
    });
  }

  /// A client's step. Its errors are in the response.
  void RunStep(uint64_t id, const RunStepRequest& request) {
    const std::shared_ptr<ServedCall> call = NewCall(id);
    if (call == nullptr) return Cancel();
    bool too_many = false;
    {
      MutexLock lock(mu_);
      too_many = calls_.size() > kMostClientSteps;
    }
    if (too_many) {
      return Answer(id, call,
                    ResourceExhausted("the client has ", kMostClientSteps,
                                      " calls on their way, as many as it may"),
                    nullptr);
    }
    const Clock::Time now = MachineClock().Now();
    if (!turn_began_) turn_began_ = now;
    ++running_steps_;
    auto frame = std::make_shared<cluster::PeerFrame>();
    RunStepResponse* const response = frame->mutable_answer()->mutable_ran_step();
    client_steps_.RunStep(
        request, response, &call->cancellation, now - *turn_began_ < kLongestTurn,
        [self = Self(), id, call, frame](Status s) {
          if (const size_t size = frame->ByteSizeLong(); size > kMaxMessageBytes) {
            s = ResourceExhausted("the answer is larger than a message can be: ", size,
                                  " bytes, of at most ", kMaxMessageBytes);
          }
          self->Answer(id, call, s, s.ok() ? frame.get() : nullptr);
          --self->running_steps_;
        });
  }

  void RecvTensor(uint64_t id, const RecvTensorRequest& request) {
    const std::shared_ptr<ServedCall> call = NewCall(id);
    if (call == nullptr) return Cancel();
    call->recv.step_id = request.step_id();
    call->recv.key = request.rendezvous_key();
    call->recv.request_id = request.request_id();
    worker_.RecvTensorAsync(&call->recv, &call->cancellation, [self = Self(), id, call](Status s) {
      if (!s.ok()) return self->Answer(id, call, s, nullptr);
      s = CatchExceptions([&] { return self->AnswerTensor(id, call); });
      if (!s.ok()) self->Answer(id, call, s, nullptr);
    });
  }

  Status AnswerTensor(uint64_t id, const std::shared_ptr<ServedCall>& call) {
    const size_t apart_above =
        reads_memory_ ? std::min(*left_above_, kTensorPartBytes) : kTensorPartBytes;
    TENON_ASSIGN_OR_RETURN(const EncodedTensor encoded,
                           EncodeTensor(call->recv.tensor, call->recv.is_dead, apart_above));
    if (encoded.plain) {
      Forget(id, call);
      SendTensor(id, encoded, encoded.apart && Leave(id, encoded.payload));
      return OkStatus();
    }
    cluster::PeerFrame frame;
    frame.mutable_answer()->mutable_received()->ParseFromString(encoded.head);
    Answer(id, call, OkStatus(), &frame);
    return OkStatus();
  }

  void Show(const std::string& challenge) {
    if (!left_above_ || was_challenged_ || challenge.size() != kMemoryChallengeBytes) return;
    was_challenged_ = true;
    if (!IsOfThisHost(rpc_->peer())) return;
    shown_.emplace(challenge);
    cluster::PeerFrame frame;
    *frame.mutable_memory_place() = shown_->place();
    Send(frame);
  }

  /// The caller can read this process's memory: it may have a socket.
  void OfferSocket(std::string_view proof) {
    if (!shown_ || !shown_->IsProof(proof) || was_offered_) return;
    was_offered_ = true;
    auto [own, others] = NewLocalSockets();
    if (!own.valid() || !KeepSocket(std::move(own), most_bytes_)) return;
    offered_ = std::move(others);
    cluster::PeerFrame frame;
    *frame.mutable_socket() = DescribeSocket(offered_);
    Send(frame);
  }

  /// The caller has taken the socket that was offered, or will not.
  void CallerMoves(bool moves) {
    if (!offered_.valid()) return Cancel();
    if (!moves) DropSocket();
    offered_ = OwnedFile();
    if (!moves) return;
    cluster::PeerFrame frame;
    frame.set_moved(true);
    if (!Move(frame) || !OtherHasMoved()) Cancel();
  }

  /// Keeps a tensor for the caller to take; false where it is to be sent.
  bool Leave(uint64_t id, const Tensor& tensor) {
    // A driver's memory may not be the system's to read.
    if (!reads_memory_ || tensor.num_bytes() <= *left_above_ ||
        &tensor.allocator() != &CpuAllocator()) {
      return false;
    }
    return left_.Keep(id, tensor);
  }

  void CleanUp(const CleanupGraphRequest& request) {
    {
      MutexLock lock(mu_);
      steps_.erase(request.step_id());
    }
    CleanupGraphResponse response;
    worker_.CleanupGraphAsync(request, &response, [](const Status&) {});
  }

  /// Ends a call. `frame` has its answer when there is more to say than the status.
  void Answer(uint64_t id, const std::shared_ptr<ServedCall>& call, const Status& status,
              cluster::PeerFrame* frame) {
    Forget(id, call);
    cluster::PeerFrame plain;
    if (frame == nullptr) frame = &plain;
    frame->set_call(id);
    frame->mutable_answer()->set_code(static_cast<int>(status.code()));
    frame->mutable_answer()->set_message(WireMessage(status));
    Send(*frame);
  }

  /// The number is free again; unless it is by now another call's, which must stay.
  void Forget(uint64_t id, const std::shared_ptr<ServedCall>& call) {
    MutexLock lock(mu_);
    const auto found = calls_.find(id);
    if (found != calls_.end() && found->second == call) calls_.erase(found);
  }

  void CancelCall(uint64_t id) {
    std::shared_ptr<ServedCall> call;
    {
      MutexLock lock(mu_);
      const auto found = calls_.find(id);
      if (found == calls_.end()) return;
      call = found->second;
    }
    call->cancellation.Cancel(Cancelled("the caller has cancelled the call"));
  }

  void OnBroken() override {
    if (shown_) shown_->Hide();
    offered_ = OwnedFile();
    flat_hash_map<uint64_t, std::shared_ptr<ServedCall>> calls;
    flat_hash_set<int64_t> steps;
    {
      MutexLock lock(mu_);
      calls.swap(calls_);
      steps.swap(steps_);
    }
    left_.Clear();
    for (auto& [id, call] : calls) call->cancellation.Cancel(Cancelled("the caller is gone"));
    // A master that has died cleans nothing up any more.
    for (const int64_t step : steps) {
      CleanupGraphRequest request;
      request.set_step_id(step);
      CleanUp(request);
    }
    rpc_->End(OkStatus());
  }

  const std::shared_ptr<ServedRpc> rpc_;
  WorkerInterface& worker_;
  StepRunner& client_steps_;
  const std::optional<size_t> left_above_;
  const size_t most_bytes_;
  std::atomic<int> running_steps_{0};      // of clients
  std::optional<Clock::Time> turn_began_;  // the first step of this turn
  std::atomic<bool> reads_memory_{false};  // the caller does
  bool was_challenged_ = false;            // to show its memory
  bool was_offered_ = false;               // a socket, once
  OwnedFile offered_;                      // the caller's end of it, until it has moved
  Mutex mu_;
  flat_hash_map<uint64_t, std::shared_ptr<ServedCall>> calls_ ABSL_GUARDED_BY(mu_);
  flat_hash_set<int64_t> steps_ ABSL_GUARDED_BY(mu_);  // run, and not cleaned up yet
  LeftTensors left_;
  std::optional<ShownMemory> shown_;  // ends before what is left there
};

}  // namespace

void ServePeers(RpcServer& server, const std::string& task, WorkerInterface& worker,
                StepRunner& steps) {
  server.HandleStream("/tenon.cluster.PeerService/Exchange", [&server, &worker, task, &steps](
                                                                 std::shared_ptr<ServedRpc> rpc) {
    const auto left_above = HostMemoryLimit(server.credentials());
    std::make_shared<ServerStream>(std::move(rpc), server.poller(), worker, steps,
                                   left_above.value_or(std::nullopt), server.limits().message_bytes)
        ->Start(task);
  });
}

}  // namespace tenon
