// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "distributed/grpc/peer/peer_calls.h"
#include "distributed/grpc/peer/peer_frames.h"
#include "distributed/grpc/rpc/rpc_server.h"
#include "runtime/device/machine_clock.h"
#include "tests/testing/counting_allocator.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {

/// The answering end of a peer stream that says what a test has it say.
class HostileStream final : public FrameReceiver,
                            public std::enable_shared_from_this<HostileStream> {
 public:
  using OnFrameFn = std::function<void(const cluster::PeerFrame& frame, HostileStream& stream)>;

  HostileStream(std::shared_ptr<ServedRpc> rpc, OnFrameFn on_frame)
      : rpc_(std::move(rpc)), on_frame_(std::move(on_frame)) {}

  void Start() {
    self_ = shared_from_this();
    cluster::PeerFrames hello;
    hello.add_frame()->mutable_hello()->set_task("/job:ps/replica:0/task:0");
    rpc_->stream().Read(&arriving_, read_.tag());
    Write(hello);
  }
  /// Its fields are written in the order of their numbers: frames, tensors, parts, places. To be
  /// called by `on_frame`.
  void Write(const cluster::PeerFrames& message) {
    messages_.push_back(message.SerializeAsString());
    if (!writing_) WriteNext();
  }

 private:
  struct ReadEnd final : Completion {
    explicit ReadEnd(HostileStream& stream) : stream(stream) {}
    void Complete(bool ok) override { stream.ReadDone(ok); }
    HostileStream& stream;
  };
  struct WriteEnd final : Completion {
    explicit WriteEnd(HostileStream& stream) : stream(stream) {}
    void Complete(bool ok) override {
      stream.writing_ = false;
      if (!ok) stream.messages_.clear();
      stream.WriteNext();
    }
    HostileStream& stream;
  };

  void WriteNext() {
    if (read_ended_) {
      rpc_->End(OkStatus());
      const std::shared_ptr<HostileStream> last = std::move(self_);
      return;
    }
    if (messages_.empty()) return;
    writing_ = true;
    const grpc::Slice slice(messages_.front());
    messages_.pop_front();
    rpc_->stream().Write(grpc::ByteBuffer(&slice, 1), write_.tag());
  }
  void ReadDone(bool ok) {
    if (ok) {
      EXPECT_OK(frames_.Read(&arriving_, *this));
      return rpc_->stream().Read(&arriving_, read_.tag());
    }
    read_ended_ = true;
    if (!writing_) WriteNext();
  }
  void OnFrame(cluster::PeerFrame frame) override { on_frame_(frame, *this); }

  const std::shared_ptr<ServedRpc> rpc_;
  const OnFrameFn on_frame_;
  ReadEnd read_{*this};
  WriteEnd write_{*this};
  grpc::ByteBuffer arriving_;
  FrameReader frames_;
  std::deque<std::string> messages_;
  bool writing_ = false, read_ended_ = false;
  std::shared_ptr<HostileStream> self_;
};

/// A task at an address of this host, whose streams answer frames by `on_frame`, and another that
/// calls it as tasks call each other.
class HostileTask {
 public:
  explicit HostileTask(HostileStream::OnFrameFn on_frame) {
    server_.HandleStream(
        "/tenon.cluster.PeerService/Exchange",
        [this, on_frame = std::make_shared<HostileStream::OnFrameFn>(std::move(on_frame))](
            std::shared_ptr<ServedRpc> rpc) {
          std::make_shared<HostileStream>(std::move(rpc), [this, on_frame](const auto& frame,
                                                                           auto& stream) {
            Note(frame);
            (*on_frame)(frame, stream);
          })->Start();
        });
    const auto port = server_.Listen("127.0.0.1", 0);
    EXPECT_OK(port);
    EXPECT_OK(server_.Start());
    calls_ = std::make_unique<PeerCalls>(
        StrCat("127.0.0.1:", *port), credentials_, poller_,
        [](const grpc::Status& status) { return Unavailable(status.error_message()); },
        [](const Status&) {});
  }
  ~HostileTask() {
    calls_->Disconnect();
    server_.Shutdown(std::chrono::milliseconds(0));
  }

  /// Opens a stream; false when none is open within a minute.
  bool Opened() {
    const Clock::Time deadline = MachineClock().Now() + kPatience;
    while (!calls_->CleanupGraph(CleanupGraphRequest())) {
      if (MachineClock().Now() > deadline) return false;
      MachineClock().SleepFor(std::chrono::milliseconds(1));
    }
    return true;
  }
  /// A call of the task, which ends within a minute.
  struct Outcome {
    Status status;
    Tensor tensor;
  };
  Outcome Receive() {
    RecvTensorCall call;
    call.memory = &memory;
    const Status status = End([&](WorkerInterface::Done& done) {
      return calls_->RecvTensor(&call, &cancellation, done);
    });
    return {status, std::move(call.tensor)};
  }
  Status Run() {
    RunGraphCall call;
    return End(
        [&](WorkerInterface::Done& done) { return calls_->RunGraph(&call, &cancellation, done); });
  }
  /// The kinds of the frames that have come to the task.
  std::vector<cluster::PeerFrame::ContentCase> came() {
    MutexLock lock(mu_);
    return came_;
  }
  /// Waits for one of a kind, a minute at most.
  bool Came(cluster::PeerFrame::ContentCase kind) {
    const Clock::Time deadline = MachineClock().Now() + kPatience;
    MutexLock lock(mu_);
    while (std::find(came_.begin(), came_.end(), kind) == came_.end()) {
      if (!MachineClock().WaitUntil(has_come_, mu_, deadline)) return false;
    }
    return true;
  }

  CountingAllocator memory;  // of what is received
  Cancellation cancellation;

 private:
  static constexpr std::chrono::seconds kPatience{60};

  /// Makes a call as soon as the stream is open.
  Status End(const std::function<bool(WorkerInterface::Done&)>& call) {
    auto promise = std::make_shared<std::promise<Status>>();
    WorkerInterface::Done done = [promise](const Status& status) { promise->set_value(status); };
    const Clock::Time deadline = MachineClock().Now() + kPatience;
    while (!call(done)) {
      if (MachineClock().Now() > deadline) return DeadlineExceeded("no stream was opened");
      MachineClock().SleepFor(std::chrono::milliseconds(1));
    }
    auto future = promise->get_future();
    if (future.wait_for(kPatience) == std::future_status::ready) return future.get();
    ADD_FAILURE() << "the call does not end";
    std::abort();  // it refers to this frame
  }
  void Note(const cluster::PeerFrame& frame) {
    MutexLock lock(mu_);
    came_.push_back(frame.content_case());
    has_come_.NotifyAll();
  }

  ThreadPool server_pool_{2}, pool_{2};
  Credentials credentials_;
  RpcServer server_{server_pool_, MachineClock(), {}, {}, {}};
  Poller poller_{std::make_unique<grpc::CompletionQueue>(), pool_, MachineClock()};
  std::unique_ptr<PeerCalls> calls_;
  Mutex mu_;
  CondVar has_come_;
  std::vector<cluster::PeerFrame::ContentCase> came_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon::testing
