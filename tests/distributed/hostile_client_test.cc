// SPDX-License-Identifier: Apache-2.0
//
// A client that does what no client should. After each attack the server answers, and its threads,
// descriptors and memory are back where they were.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <thread>
#include <utility>

#include "core/base/sanitizers.h"
#include "core/device/rendezvous.h"
#include "core/proto/proto_io_graph.h"
#include "distributed/grpc/peer/peer_frames.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/register.h"
#include "proto/master.pb.h"
#include "proto/worker.pb.h"
#include "tests/distributed/raw_client.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/test_cluster.h"

namespace tenon {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::RawCaller;
using testing::RawSocket;
using testing::TestCluster;

const std::string kMaster = "/tensorflow.MasterService/";
const std::string kWorker = "/tensorflow.WorkerService/";
const std::string kPeers = "/tenon.cluster.PeerService/Exchange";
constexpr char kHttp2Preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What the process holds.
struct Holdings {
  int64_t threads = 0;
  int64_t descriptors = 0;
  int64_t kibibytes = 0;

  static Holdings Now() {
    malloc_trim(0);
    Holdings now;
    const auto count = [](const char* path) {
      return std::distance(std::filesystem::directory_iterator(path),
                           std::filesystem::directory_iterator());
    };
    now.threads = count("/proc/self/task");
    now.descriptors = count("/proc/self/fd");
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmRSS:")) now.kibibytes = std::atoll(line.c_str() + 6);
    }
    return now;
  }
};

class HostileClientTest : public ::testing::Test {
 protected:
  HostileClientTest() {
    limits_.sessions = 100;
    limits_.session_timeout = std::chrono::seconds(2);
    cluster_ = std::make_unique<TestCluster>(0, 1, limits_);
    cluster_->StartAll();
    server_ = &cluster_->at("worker", 0);
    Graph graph(AllOps());
    GraphBuilding building(graph);
    Placeholder(DType::kFloat, {}, {.name = "x"});
    Neg(Const({1.0f, 2.0f}, {.name = "c"}), {.name = "y"});
    EXPECT_OK(GraphToProto(graph, create_.mutable_graph_def()));
    // What the first call of each kind leaves belongs to the server.
    EXPECT_TRUE(Answers());
  }

  /// Whether a well-behaved client gets its step run.
  bool Answers() {
    RawCaller caller(server_->target());
    CreateSessionResponse session;
    grpc::Status status = caller.Call(kMaster + "CreateSession", create_, &session);
    RunStepRequest run;
    run.set_session_handle(session.session_handle());
    run.add_fetch("y:0");
    run.set_store_errors_in_response_body(true);
    RunStepResponse ran;
    if (status.ok()) status = caller.Call(kMaster + "RunStep", run, &ran);
    CloseSessionRequest close;
    close.set_session_handle(session.session_handle());
    CloseSessionResponse closed;
    if (status.ok()) status = caller.Call(kMaster + "CloseSession", close, &closed);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return status.ok() && ran.tensor_size() == 1;
  }

  /// A receive of what no step makes.
  cluster::PeerFrame Receive() {
    GetStatusResponse status;
    EXPECT_TRUE(
        RawCaller(server_->target()).Call(kWorker + "GetStatus", GetStatusRequest(), &status).ok());
    const std::string device = status.device_attributes(0).name();
    const RendezvousKey key{device, status.device_attributes(0).incarnation(), device, "x", 0, 0};
    cluster::PeerFrame frame;
    frame.mutable_recv_tensor()->set_rendezvous_key(key.ToString());
    return frame;
  }

  /// Waits until the process holds what it held before, but for `mebibytes`.
  void ExpectBack(const Holdings& before, int64_t mebibytes = 48) {
    EXPECT_TRUE(Answers());
    const auto deadline = steady_clock::now() + std::chrono::seconds(60);
    Holdings now;
    bool back = false;
    while (!back && steady_clock::now() < deadline) {
      now = Holdings::Now();
      // gRPC keeps a few threads that it once needed.
      back = now.threads <= before.threads + 6 && now.descriptors <= before.descriptors + 4 &&
             (kSanitized || now.kibibytes <= before.kibibytes + (mebibytes << 10));
      if (!back) std::this_thread::sleep_for(milliseconds(50));
    }
    std::cout << "threads " << before.threads << " -> " << now.threads << ", descriptors "
              << before.descriptors << " -> " << now.descriptors << ", KiB " << before.kibibytes
              << " -> " << now.kibibytes << "\n";
    EXPECT_TRUE(back) << server_->Describe();
    EXPECT_TRUE(Answers());
  }

  void ExpectNoReceives() {
    const auto deadline = steady_clock::now() + std::chrono::seconds(60);
    while (server_->Describe().find("receives that wait: 0") == std::string::npos) {
      ASSERT_LT(steady_clock::now(), deadline) << server_->Describe();
      std::this_thread::sleep_for(milliseconds(20));
    }
  }

  CreateSessionRequest create_;
  ServerLimits limits_;
  std::unique_ptr<TestCluster> cluster_;
  Server* server_ = nullptr;
};

TEST_F(HostileClientTest, BytesThatAreNoProtocol) {
  const Holdings before = Holdings::Now();
  const std::string bytes[] = {
      "GET / HTTP/1.1\r\nHost: x\r\n\r\n", std::string(100'000, '\0'), std::string(100'000, '\xff'),
      std::string(kHttp2Preface) + std::string(1000, '\xff'),
      // A SETTINGS frame, then one of 16 MiB that never comes.
      std::string(kHttp2Preface) + std::string("\0\0\0\4\0\0\0\0\0", 9) +
          std::string("\xff\xff\xff\0\0\0\0\0\1", 9),
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),  // TLS
  };
  for (int i = 0; i < 20; ++i) {
    for (const std::string& b : bytes) {
      RawSocket socket(server_->port());
      ASSERT_TRUE(socket.connected());
      socket.Send(b);
    }
  }
  ExpectBack(before);
}

TEST_F(HostileClientTest, ConnectionsThatSayNothing) {
  const Holdings before = Holdings::Now();
  {
    std::vector<std::unique_ptr<RawSocket>> silent;
    for (int i = 0; i < 300; ++i) {
      silent.push_back(std::make_unique<RawSocket>(server_->port()));
      if (i % 2 == 0) silent.back()->Send(kHttp2Preface);
    }
    EXPECT_TRUE(Answers());
  }
  ExpectBack(before);
}

TEST_F(HostileClientTest, RequestsThatAreNoMessages) {
  const Holdings before = Holdings::Now();
  RawCaller caller(server_->target());
  for (const std::string& method :
       {kMaster + "CreateSession", kMaster + "ExtendSession", kMaster + "RunStep",
        kMaster + "CloseSession", kMaster + "ListDevices", kMaster + "Reset", kWorker + "GetStatus",
        kWorker + "CreateWorkerSession", kWorker + "RegisterGraph", kWorker + "RunGraph",
        kWorker + "RecvTensor", kWorker + "CleanupGraph", kWorker + "CleanupAll",
        kWorker + "DeregisterGraph", std::string("/no.Such/Method"), std::string("no path")}) {
    EXPECT_FALSE(caller.Call(method, std::string(1000, '\xff')).ok()) << method;
  }
  ExpectBack(before);
}

TEST_F(HostileClientTest, HandlesThatNobodyGave) {
  const Holdings before = Holdings::Now();
  RawCaller caller(server_->target());
  RunStepRequest run;
  run.set_session_handle("0123456789abcdef");
  run.add_fetch("y:0");
  RunStepResponse ran;
  EXPECT_EQ(caller.Call(kMaster + "RunStep", run, &ran).error_code(), grpc::StatusCode::ABORTED);
  RunGraphRequest graph;
  graph.set_session_handle("x");
  RunGraphResponse graph_ran;
  EXPECT_EQ(caller.Call(kWorker + "RunGraph", graph, &graph_ran).error_code(),
            grpc::StatusCode::ABORTED);
  DeregisterGraphRequest deregister;
  DeregisterGraphResponse deregistered;
  EXPECT_EQ(caller.Call(kWorker + "DeregisterGraph", deregister, &deregistered).error_code(),
            grpc::StatusCode::ABORTED);
  ExpectBack(before);
}

TEST_F(HostileClientTest, SmallRequestsForMuchMemory) {
  const Holdings before = Holdings::Now();
  RawCaller caller(server_->target());
  CreateSessionResponse session;
  ASSERT_TRUE(caller.Call(kMaster + "CreateSession", create_, &session).ok());
  // Each of the feeds alone would be allowed.
  RunStepRequest run;
  run.set_session_handle(session.session_handle());
  run.add_fetch("x:0");
  run.set_store_errors_in_response_body(true);
  for (const int64_t size : {int64_t{1} << 16, (int64_t{2} << 30) - 1, (int64_t{2} << 30) - 1}) {
    NamedTensorProto* feed = run.add_feed();
    feed->set_name("x:0");
    feed->mutable_tensor()->set_dtype(DT_UINT8);
    feed->mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(size);
  }
  RunStepResponse ran;
  ASSERT_TRUE(caller.Call(kMaster + "RunStep", run, &ran).ok());
  EXPECT_EQ(ran.status_code(), error::INVALID_ARGUMENT);
  EXPECT_NE(ran.status_error_message().find("bytes allowed"), std::string::npos);
  // A megabyte that unzips to a gigabyte.
  const grpc::Status zipped = caller.Call(kMaster + "CreateSession", std::string(256 << 20, '\0'),
                                          std::chrono::seconds(60), nullptr, true);
  EXPECT_EQ(zipped.error_code(), grpc::StatusCode::UNIMPLEMENTED) << zipped.error_message();
  ExpectBack(before);
}

TEST_F(HostileClientTest, TheSameRequestTwice) {
  const Holdings before = Holdings::Now();
  RawCaller caller(server_->target());
  CreateSessionResponse session;
  ASSERT_TRUE(caller.Call(kMaster + "CreateSession", create_, &session).ok());
  RunStepRequest run;
  run.set_session_handle(session.session_handle());
  run.add_fetch("y:0");
  run.set_request_id(5);
  RunStepResponse ran;
  EXPECT_TRUE(caller.Call(kMaster + "RunStep", run, &ran).ok());
  EXPECT_EQ(caller.Call(kMaster + "RunStep", run, &ran).error_code(), grpc::StatusCode::ABORTED);
  CloseSessionRequest close;
  close.set_session_handle(session.session_handle());
  CloseSessionResponse closed;
  EXPECT_TRUE(caller.Call(kMaster + "CloseSession", close, &closed).ok());
  EXPECT_EQ(caller.Call(kMaster + "CloseSession", close, &closed).error_code(),
            grpc::StatusCode::ABORTED);
  ExpectBack(before);
}

TEST_F(HostileClientTest, TenThousandSessionsThatNobodyCloses) {
  const Holdings before = Holdings::Now();
  RawCaller caller(server_->target());
  int refused = 0;
  for (int i = 0; i < (kSanitized ? 1000 : 10'000); ++i) {
    CreateSessionResponse session;
    const grpc::Status status = caller.Call(kMaster + "CreateSession", create_, &session);
    if (!status.ok()) {
      ++refused;
      ASSERT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    }
  }
  EXPECT_GT(refused, 0);
  // The limit holds until those that are idle have been closed.
  const auto deadline = steady_clock::now() + std::chrono::seconds(60);
  while (server_->Describe().find("\nsession ") != std::string::npos) {
    ASSERT_LT(steady_clock::now(), deadline);
    std::this_thread::sleep_for(milliseconds(50));
  }
  ExpectBack(before);
}

/// A peer stream that sends what it likes, and reads nothing until it waits for the end.
class MutePeer {
 public:
  explicit MutePeer(const std::string& target) : stub_(OpenChannel(*AddressOfTarget(target))) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    stream_ = stub_.PrepareCall(&context_, kPeers, &queue_);
    stream_->StartCall(nullptr);
    Wait();
  }
  ~MutePeer() {
    context_.TryCancel();
    Finish();
  }
  void Cancel() { context_.TryCancel(); }
  /// False when the server has ended the stream.
  bool Send(const grpc::ByteBuffer& message) {
    stream_->Write(message, nullptr);
    return Wait();
  }
  /// Reads until the server ends the stream. False when it does not within seconds.
  bool WaitForTheEnd() {
    grpc::ByteBuffer answer;
    do {
      stream_->Read(&answer, nullptr);
    } while (Wait());
    return Finish() != grpc::StatusCode::DEADLINE_EXCEEDED;
  }

 private:
  grpc::StatusCode Finish() {
    grpc::Status status;
    if (!std::exchange(finished_, true)) {
      stream_->Finish(&status, nullptr);
      Wait();
    }
    return status.error_code();
  }
  bool Wait() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  bool finished_ = false;
};

TEST_F(HostileClientTest, AHundredThousandReceivesForStepsThatNobodyRuns) {
  const Holdings before = Holdings::Now();
  cluster::PeerFrame receive = Receive();
  {
    MutePeer peer(server_->target());
    uint64_t call = 0;
    for (int i = 0; i < (kSanitized ? 10 : 100); ++i) {
      FrameBatch batch;
      for (int j = 0; j < 1000; ++j) {
        receive.set_call(++call);
        receive.mutable_recv_tensor()->set_step_id(static_cast<int64_t>(call));
        batch.Add(receive);
      }
      ASSERT_TRUE(peer.Send(batch.Take()));
    }
    EXPECT_TRUE(Answers());
  }
  ExpectBack(before);
  ExpectNoReceives();
}

TEST_F(HostileClientTest, ReceivesWhoseNumbersOtherCallsUseToo) {
  const Holdings before = Holdings::Now();
  cluster::PeerFrame first = Receive();
  first.set_call(1);
  cluster::PeerFrame unknown, run, second = first;
  unknown.set_call(1);
  run.set_call(1);
  run.mutable_run_graph()->set_step_id(5);
  for (const auto* frame : {&unknown, &run, &second}) {
    for (int64_t step = 1; step <= 20; ++step) {
      first.mutable_recv_tensor()->set_step_id(step);
      FrameBatch batch;
      batch.Add(first);
      batch.Add(*frame);
      MutePeer peer(server_->target());
      peer.Send(batch.Take());
      ASSERT_TRUE(peer.WaitForTheEnd()) << server_->Describe();
    }
  }
  ExpectBack(before);
  ExpectNoReceives();
}

TEST_F(HostileClientTest, StreamsThatAreOpenedAndBroken) {
  const Holdings before = Holdings::Now();
  cluster::PeerFrame unknown;
  unknown.set_call(1);
  cluster::PeerFrame bad_run;
  bad_run.set_call(2);
  bad_run.mutable_run_graph()->set_step_id(5);
  for (int i = 0; i < (kSanitized ? 100 : 2000); ++i) {
    MutePeer peer(server_->target());
    FrameBatch batch;
    if (i % 4 == 0) batch.Add(unknown);
    if (i % 4 == 1) batch.Add(bad_run);
    if (i % 4 == 2) {
      const grpc::Slice noise(std::string(100, '\xff'));
      peer.Send(grpc::ByteBuffer(&noise, 1));
      continue;
    }
    peer.Send(batch.Take());
  }
  ExpectBack(before);
}

TEST_F(HostileClientTest, APeerThatSendsCallsAndTakesNoAnswer) {
  const Holdings before = Holdings::Now();
  {
    MutePeer peer(server_->target());
    std::jthread end([&] {
      std::this_thread::sleep_for(milliseconds(kSanitized ? 6000 : 3000));
      peer.Cancel();
    });
    cluster::PeerFrame frame;
    frame.mutable_run_graph()->set_session_handle(std::string(1000, 'x'));
    uint64_t call = 0;
    bool sent = true;
    while (sent) {
      FrameBatch batch;
      for (int i = 0; i < 500; ++i) {
        frame.set_call(++call);
        batch.Add(frame);
      }
      sent = peer.Send(batch.Take());
      // Its calls would be gigabytes by now.
      ASSERT_LT(Holdings::Now().kibibytes,
                before.kibibytes + (int64_t{kSanitized ? 2048 : 600} << 10));
    }
  }
  ExpectBack(before, 160);  // of what malloc keeps for the next time
}

TEST_F(HostileClientTest, AMessageOfMillionsOfEmptyFrames) {
  MutePeer peer(server_->target());
  std::string frames;
  while (frames.size() < 8 << 20) frames.append("\x0a\0", 2);
  const grpc::Slice slice(frames);
  peer.Send(grpc::ByteBuffer(&slice, 1));
  EXPECT_TRUE(peer.WaitForTheEnd() && Answers());
}

TEST_F(HostileClientTest, ExtendRunCloseAndResetFromEightThreads) {
  const Holdings before = Holdings::Now();
  // A minute when asked for: the numbers of docs/security.md.
  const char* seconds = std::getenv("TENON_HOSTILE_SECONDS");
  const auto end = steady_clock::now() + std::chrono::seconds(seconds ? std::atoi(seconds) : 3);
  std::atomic<int64_t> calls = 0, well = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        RawCaller caller(server_->target());
        CreateSessionResponse session;
        std::mt19937 random(t);
        const auto count = [&](const grpc::Status& s) {
          ++calls;
          if (s.ok()) ++well;
          EXPECT_NE(s.error_code(), grpc::StatusCode::UNAVAILABLE) << s.error_message();
          EXPECT_NE(s.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << s.error_message();
        };
        int version = 0;
        while (steady_clock::now() < end) {
          const int what = static_cast<int>(random() % 20);
          if (session.session_handle().empty() || what == 0) {
            count(caller.Call(kMaster + "CreateSession", create_, &session));
            version = 0;
          } else if (what == 1) {
            CloseSessionRequest request;
            request.set_session_handle(session.session_handle());
            CloseSessionResponse response;
            count(caller.Call(kMaster + "CloseSession", request, &response));
            session.clear_session_handle();
          } else if (what == 2) {
            ResetResponse response;
            count(caller.Call(kMaster + "Reset", ResetRequest(), &response));
          } else if (what < 8) {
            ExtendSessionRequest request;
            request.set_session_handle(session.session_handle());
            request.set_current_graph_version(version);
            NodeDef* node = request.mutable_graph_def()->add_node();
            node->set_name(StrCat("n", version));
            node->set_op("NoOp");
            ExtendSessionResponse response;
            const grpc::Status s = caller.Call(kMaster + "ExtendSession", request, &response);
            count(s);
            if (s.ok()) ++version;
          } else {
            RunStepRequest request;
            request.set_session_handle(session.session_handle());
            request.add_fetch("y:0");
            if (version > 0) request.add_target(StrCat("n", random() % version));
            RunStepResponse response;
            count(caller.Call(kMaster + "RunStep", request, &response));
          }
        }
      });
    }
  }
  std::cout << calls << " calls, " << well << " of them well\n";
  EXPECT_GT(well, 0);
  ExpectBack(before);
}

}  // namespace
}  // namespace tenon
