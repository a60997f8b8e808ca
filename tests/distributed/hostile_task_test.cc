// SPDX-License-Identifier: Apache-2.0
//
// Answers of a task of the job that means harm: the calls of other tasks end, with an error where
// the answer is none, and those tasks live on.
#include "tests/distributed/hostile_task.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <thread>

#include "distributed/grpc/peer/local_socket.h"
#include "distributed/grpc/peer/peer_memory.h"
#include "tests/testing/host_memory.h"

namespace tenon {
namespace {

using ::testing::Contains;
using testing::HostileStream;
using testing::HostileTask;
using testing::IsError;
using ::testing::Not;
using Frame = cluster::PeerFrame;
using Frames = cluster::PeerFrames;

constexpr int64_t kLarge = 3 << 20;  // bytes of a tensor that comes in parts, or stays in memory

/// The head of a tensor that answers `call`; its bytes follow unless it has some.
void AddTensor(Frames* message, uint64_t call, int64_t num_bytes, const std::string& content = "") {
  cluster::PeerTensor& answer = *message->add_tensor();
  answer.set_call(call);
  TensorProto& tensor = *answer.mutable_response()->mutable_tensor();
  tensor.set_dtype(DT_UINT8);
  tensor.mutable_tensor_shape()->add_dim()->set_size(num_bytes);
  tensor.set_tensor_content(content);
}

void AddPart(Frames* message, uint64_t call, size_t num_bytes) {
  message->add_part()->set_call(call);
  message->mutable_part()->rbegin()->set_content(std::string(num_bytes, 'p'));
}

void AddPlace(Frames* message, uint64_t call, uint64_t address) {
  message->add_place()->set_call(call);
  message->mutable_place()->rbegin()->set_address(address);
}

/// Shows the caller's challenge and says where.
std::unique_ptr<ShownMemory> Show(const Frame& challenge, Frames* message) {
  auto shown = std::make_unique<ShownMemory>(challenge.memory_challenge());
  *message->add_frame()->mutable_memory_place() = shown->place();
  return shown;
}

Frames Moved() {
  Frames message;
  message.add_frame()->set_moved(true);
  return message;
}

/// Answers a receive rightly.
void AnswerWell(uint64_t call, HostileStream& stream) {
  Frames message;
  AddTensor(&message, call, 3, "abc");
  stream.Write(message);
}

/// The first receive is answered by what `fill` adds, the others are answered rightly.
HostileStream::OnFrameFn FirstAnswer(std::function<void(uint64_t call, Frames* message)> fill) {
  return [fill = std::move(fill), first = true](const Frame& frame, HostileStream& stream) mutable {
    if (!frame.has_recv_tensor()) return;
    if (!std::exchange(first, false)) return AnswerWell(frame.call(), stream);
    Frames message;
    fill(frame.call(), &message);
    stream.Write(message);
  };
}

/// Shows this process's memory, as a task does that answers a neighbour, and `receive` answers
/// receives.
class ShowingTask {
 public:
  using Receive = std::function<void(uint64_t call, HostileStream& stream)>;
  explicit ShowingTask(Receive receive)
      : receive_(std::move(receive)), task_([this](const Frame& frame, HostileStream& stream) {
          if (frame.has_memory_challenge()) {
            Frames message;
            shown_ = Show(frame, &message);
            stream.Write(message);
          } else if (frame.has_recv_tensor()) {
            receive_(frame.call(), stream);
          }
        }) {}
  /// Once the caller has said that it reads this process's memory.
  HostileTask& ReadBy() {
    EXPECT_TRUE(task_.Opened());
    EXPECT_TRUE(task_.Came(Frame::kReadsMemory));
    return task_;
  }

 private:
  const testing::HostMemory usual_{nullptr};
  Receive receive_;
  std::unique_ptr<ShownMemory> shown_;
  HostileTask task_;
};

TEST(HostileTaskTest, AStreamThatAnswersRightlyServesCalls) {
  HostileTask task(FirstAnswer([](uint64_t call, Frames* message) {
    AddTensor(message, call, kLarge);
    AddPart(message, call, kLarge / 3);
    AddPart(message, call, kLarge - kLarge / 3);
  }));
  const HostileTask::Outcome large = task.Receive(), small = task.Receive();
  ASSERT_OK(large.status);
  EXPECT_EQ(large.tensor.num_bytes(), size_t{kLarge});
  EXPECT_EQ(static_cast<const char*>(large.tensor.raw_data())[kLarge - 1], 'p');
  ASSERT_OK(small.status);
  EXPECT_EQ(std::memcmp(small.tensor.raw_data(), "abc", 3), 0);
}

TEST(HostileTaskTest, MessagesThatBreakTheOrderEndTheStreamAndTheNextOneServes) {
  const std::vector<std::pair<const char*, std::function<void(uint64_t, Frames*)>>> answers = {
      {"a part of nothing", [](uint64_t call, Frames* m) { AddPart(m, call, 8); }},
      {"more bytes than were said",
       [](uint64_t call, Frames* m) {
         AddTensor(m, call, kLarge);
         AddPart(m, call, kLarge + 1);
       }},
      {"more bytes than were left",
       [](uint64_t call, Frames* m) {
         AddTensor(m, call, kLarge);
         AddPart(m, call, kLarge - 1);
         AddPart(m, call, 2);
       }},
      {"a tensor while another one comes for the call",
       [](uint64_t call, Frames* m) {
         AddTensor(m, call, kLarge);
         AddTensor(m, call, 3, "abc");
       }},
      {"two tensors at once",
       [](uint64_t call, Frames* m) {
         AddTensor(m, call, kLarge);
         AddTensor(m, call, kLarge);
       }},
      {"a place in memory that is not read",
       [](uint64_t call, Frames* m) {
         AddTensor(m, call, kLarge);
         AddPlace(m, call, 4096);
       }},
      {"a place of nothing", [](uint64_t call, Frames* m) { AddPlace(m, call, 4096); }},
      {"a place after parts",
       [](uint64_t call, Frames* m) {
         AddTensor(m, call, kLarge);
         AddPart(m, call, 1);
         AddPlace(m, call, 4096);
       }},
      {"a size that no memory has",
       [](uint64_t call, Frames* m) {
         AddTensor(m, call, std::numeric_limits<int64_t>::max());
         m->mutable_tensor(0)->mutable_response()->mutable_tensor()->set_dtype(DT_DOUBLE);
       }},
      {"a size below nothing", [](uint64_t call, Frames* m) { AddTensor(m, call, -5); }},
      {"another size than its bytes",
       [](uint64_t call, Frames* m) { AddTensor(m, call, 4, "abc"); }},
      {"moved to no socket", [](uint64_t, Frames* m) { m->add_frame()->set_moved(true); }},
  };
  for (const auto& [name, fill] : answers) {
    SCOPED_TRACE(name);
    HostileTask task(FirstAnswer(fill));
    EXPECT_THAT(task.Receive().status, IsError(StatusCode::kUnavailable, ""));
    EXPECT_EQ(task.memory.bytes_in_use(), 0);
    if (&name == &answers.front().first) EXPECT_OK(task.Receive().status);  // takes a second
  }
}

TEST(HostileTaskTest, AnswersOfTheWrongKindAreErrorsOfTheCall) {
  HostileTask task([](const Frame& frame, HostileStream& stream) {
    Frames message;
    if (frame.has_recv_tensor()) {
      message.add_frame()->set_call(frame.call());
      message.mutable_frame(0)->mutable_answer()->mutable_ran_graph();
    } else if (frame.has_run_graph()) {
      AddTensor(&message, frame.call(), 3, "abc");
    }
    stream.Write(message);
  });
  EXPECT_THAT(task.Receive().status, Not(IsError(StatusCode::kOk, "")));
  EXPECT_THAT(task.Run(), IsError(StatusCode::kInternal, "a run was answered with a tensor"));
}

TEST(HostileTaskTest, AnswersThatNobodyWaitsForAreSkipped) {
  HostileTask task([](const Frame& frame, HostileStream& stream) {
    if (!frame.has_recv_tensor()) return;
    Frames others;
    for (const uint64_t call : {uint64_t{1} << 40, frame.call() + 1, ~uint64_t{0}}) {
      others.add_frame()->set_call(call);
      others.mutable_frame()->rbegin()->mutable_answer()->set_code(13);
      AddTensor(&others, call, 3, "abc");
      AddTensor(&others, call, kLarge);
      AddPart(&others, call, kLarge);
    }
    others.add_frame()->mutable_hello()->set_task("another");
    others.add_frame()->set_taken(true);
    others.add_frame()->mutable_socket()->set_number(0);
    others.add_frame()->mutable_run_graph();
    stream.Write(others);
    AnswerWell(frame.call(), stream);
    AnswerWell(frame.call(), stream);
  });
  for (int i = 0; i < 3; ++i) EXPECT_OK(task.Receive().status);
}

TEST(HostileTaskTest, ATensorThatNeverComesWholeIsFreedWithItsCall) {
  HostileTask task(FirstAnswer([](uint64_t call, Frames* message) {
    AddTensor(message, call, kLarge);
    AddPart(message, call, kLarge - 1);
  }));
  std::jthread gives_up([&] {
    while (task.memory.bytes_in_use() == 0) MachineClock().SleepFor(std::chrono::milliseconds(1));
    task.cancellation.Cancel(Cancelled("the step is over"));
  });
  EXPECT_THAT(task.Receive().status, IsError(StatusCode::kCancelled, "the step is over"));
  EXPECT_EQ(task.memory.bytes_in_use(), 0);
}

TEST(HostileTaskTest, ATensorWhoseCallIsAnsweredOtherwiseIsFreed) {
  HostileTask task([](const Frame& frame, HostileStream& stream) {
    if (!frame.has_recv_tensor()) return;
    Frames head, answer;
    AddTensor(&head, frame.call(), kLarge);
    stream.Write(head);
    answer.add_frame()->set_call(frame.call());
    answer.mutable_frame(0)->mutable_answer()->set_code(static_cast<int>(StatusCode::kInternal));
    stream.Write(answer);
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(task.Receive().status, IsError(StatusCode::kInternal, ""));
    EXPECT_EQ(task.memory.bytes_in_use(), 0);
  }
}

TEST(HostileTaskTest, APlaceWhereNothingIsFailsOneCall) {
  for (const uint64_t address :
       {uint64_t{1}, uint64_t{4096}, ~uint64_t{0} - 10, ~uint64_t{0} / 2}) {
    ShowingTask showing([&, first = true](uint64_t call, HostileStream& stream) mutable {
      if (!std::exchange(first, false)) return AnswerWell(call, stream);
      Frames message;
      AddTensor(&message, call, kLarge);
      AddPlace(&message, call, address);
      stream.Write(message);
    });
    HostileTask& task = showing.ReadBy();
    EXPECT_THAT(task.Receive().status, IsError(StatusCode::kUnavailable, "the memory of process"));
    EXPECT_OK(task.Receive().status);
    EXPECT_TRUE(task.Came(Frame::kTaken));
    EXPECT_EQ(task.memory.bytes_in_use(), 0);
  }
}

/// The tensor is longer than the memory at its place.
TEST(HostileTaskTest, ALengthBeyondTheMemoryFailsOneCall) {
  const size_t page = sysconf(_SC_PAGESIZE);
  char* const pages = static_cast<char*>(
      mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  mprotect(pages + 2 * page, page, PROT_NONE);
  ShowingTask showing([&, first = true](uint64_t call, HostileStream& stream) mutable {
    Frames message;
    AddTensor(&message, call, static_cast<int64_t>(2 * page));
    AddPlace(&message, call, reinterpret_cast<uint64_t>(pages + (first ? page : 0)));
    first = false;
    stream.Write(message);
  });
  HostileTask& task = showing.ReadBy();
  EXPECT_THAT(task.Receive().status, IsError(StatusCode::kUnavailable, "the memory of process"));
  EXPECT_OK(task.Receive().status);
  munmap(pages, 3 * page);
}

/// The pages go and come back while they are copied.
TEST(HostileTaskTest, MemoryThatIsUnmappedWhileItIsRead) {
  constexpr size_t kBytes = 8 << 20;
  char* const pages = static_cast<char*>(
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  ShowingTask showing([&](uint64_t call, HostileStream& stream) {
    Frames message;
    AddTensor(&message, call, kBytes);
    AddPlace(&message, call, reinterpret_cast<uint64_t>(pages));
    stream.Write(message);
  });
  HostileTask& task = showing.ReadBy();
  std::atomic<bool> over = false;
  std::jthread remaps([&] {
    while (!over) {
      mmap(pages + kBytes / 2, kBytes / 2, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
           0);
      std::this_thread::yield();
      mmap(pages + kBytes / 2, kBytes / 2, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
      std::this_thread::yield();
    }
  });
  for (int i = 0; i < 50; ++i) {
    const Status status = task.Receive().status;
    if (!status.ok())
      EXPECT_THAT(status, IsError(StatusCode::kUnavailable, "the memory of process"));
  }
  over = true;
  remaps.join();
  EXPECT_OK(task.Receive().status);
  munmap(pages, kBytes);
}

/// The process has the caller's challenge at the place, as one has that was asked for it by whoever
/// answers here.
TEST(HostileTaskTest, AnotherProcessThanTheOneThatIsConnectedIsNotRead) {
  const testing::HostMemory usual(nullptr);
  const auto page = static_cast<char*>(mmap(nullptr, sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
                                            MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(page, MAP_FAILED);
  const pid_t child = fork();  // before anything listens
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (true) pause();
  }
  // The second place of a stream is not looked at, although that process is the one.
  for (const pid_t process : {child, getppid(), 1, 0, -1}) {
    HostileTask task([&](const Frame& frame, HostileStream& stream) {
      if (frame.has_memory_challenge()) {
        std::memcpy(page, frame.memory_challenge().data(), frame.memory_challenge().size());
        Frames message;
        for (const pid_t named : {process, getpid()}) {
          Frame& place = *message.add_frame();
          place.mutable_memory_place()->set_process(named);
          place.mutable_memory_place()->set_address(reinterpret_cast<uint64_t>(page));
        }
        stream.Write(message);
      } else if (frame.has_recv_tensor()) {
        AnswerWell(frame.call(), stream);
      }
    });
    EXPECT_TRUE(task.Opened());
    EXPECT_TRUE(task.Came(Frame::kMemoryChallenge));
    for (int i = 0; i < 3; ++i) EXPECT_OK(task.Receive().status);
    EXPECT_THAT(task.came(), Not(Contains(Frame::kReadsMemory)));
    EXPECT_THAT(task.came(), Not(Contains(Frame::kMemoryProof)));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  munmap(page, sysconf(_SC_PAGESIZE));
}

/// Hiding is what a task does before it frees what others may be reading.
TEST(HostileTaskTest, ATaskThatDoesNotShowItsMemoryAnyMoreFailsTheCall) {
  std::unique_ptr<ShownMemory> shown;
  const std::string bytes(kLarge, 'b');
  const testing::HostMemory usual(nullptr);
  HostileTask task([&](const Frame& frame, HostileStream& stream) {
    Frames message;
    if (frame.has_memory_challenge()) {
      shown = Show(frame, &message);
    } else if (frame.has_recv_tensor()) {
      shown->Hide();
      AddTensor(&message, frame.call(), kLarge);
      AddPlace(&message, frame.call(), reinterpret_cast<uint64_t>(bytes.data()));
    }
    stream.Write(message);
  });
  EXPECT_TRUE(task.Opened());
  EXPECT_TRUE(task.Came(Frame::kReadsMemory));
  EXPECT_THAT(task.Receive().status,
              IsError(StatusCode::kUnavailable, "does not show its memory any more"));
}

/// Each offer names something else than one end of a new connection.
TEST(HostileTaskTest, SocketsThatAreNoneAreRefusedAndTheStreamGoesOn) {
  auto [own, others] = NewLocalSockets();
  const std::vector<std::function<void(cluster::PeerSocket*)>> offers = {
      [](cluster::PeerSocket* socket) { socket->set_number(-1); },
      [](cluster::PeerSocket* socket) { socket->set_number(1 << 20); },
      [](cluster::PeerSocket* socket) { socket->set_number(STDIN_FILENO); },
      [&](cluster::PeerSocket* socket) {
        *socket = DescribeSocket(others);
        socket->set_inode(socket->inode() + 1);
      }};
  for (const auto& offer : offers) {
    std::unique_ptr<ShownMemory> shown;
    const testing::HostMemory usual(nullptr);
    HostileTask task([&](const Frame& frame, HostileStream& stream) {
      Frames message;
      if (frame.has_memory_challenge()) {
        shown = Show(frame, &message);
      } else if (frame.has_memory_proof()) {
        EXPECT_TRUE(shown->IsProof(frame.memory_proof()));
        offer(message.add_frame()->mutable_socket());
      } else if (frame.has_recv_tensor()) {
        return AnswerWell(frame.call(), stream);
      }
      stream.Write(message);
    });
    EXPECT_TRUE(task.Opened());
    EXPECT_TRUE(task.Came(Frame::kMoved));  // the frame says that the caller has not
    EXPECT_OK(task.Receive().status);
  }
}

/// Whether a call of Receive has come.
struct FrameSearch final : FrameReceiver {
  void OnFrame(Frame frame) override { found = found || frame.has_recv_tensor(); }
  bool found = false;
};

/// The task's end of the socket, which the caller has moved to, is misused.
TEST(HostileTaskTest, ASocketThatIsAbusedEndsTheStreamAndTheNextOneServes) {
  const auto write = [](int socket, std::string_view bytes) {
    EXPECT_EQ(send(socket, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  };
  const std::vector<std::function<void(int)>> abuses = {
      [](int socket) { shutdown(socket, SHUT_RDWR); },
      [&](int socket) { write(socket, "\xff\xff\xff\xff and no such message"); },
      [&](int socket) { write(socket, std::string_view("\4\0\0\0none", 8)); },
      [&](int socket) {  // moved once more
        const std::string moved = Moved().SerializeAsString();
        write(socket,
              std::string(1, static_cast<char>(moved.size())) + std::string(3, '\0') + moved);
      }};
  for (const auto& abuse : abuses) {
    auto [own, others] = NewLocalSockets();
    std::unique_ptr<ShownMemory> shown;
    const testing::HostMemory usual(nullptr);
    HostileTask task([&](const Frame& frame, HostileStream& stream) {
      Frames message;
      if (frame.has_memory_challenge()) {
        shown = Show(frame, &message);
      } else if (frame.has_memory_proof() && others.valid()) {
        *message.add_frame()->mutable_socket() = DescribeSocket(others);
      } else if (frame.has_moved()) {
        others = OwnedFile();
        message = Moved();
      } else if (frame.has_recv_tensor()) {
        return AnswerWell(frame.call(), stream);
      }
      stream.Write(message);
    });
    EXPECT_TRUE(task.Opened());
    EXPECT_TRUE(task.Came(Frame::kMoved));
    std::jthread harm([&] {
      LocalSocket socket{OwnedFile(dup(own.number()))};
      FrameSearch search;
      while (!search.found) {
        pollfd ready = {own.number(), POLLIN, 0};
        poll(&ready, 1, -1);
        FrameReader frames;
        ASSERT_OK(socket.Read([&](std::string_view m) { return frames.Read(m, search); }));
      }
      abuse(own.number());
    });
    EXPECT_THAT(task.Receive().status, IsError(StatusCode::kUnavailable, ""));
    if (&abuse == &abuses.front()) EXPECT_OK(task.Receive().status);  // takes a second
  }
}

}  // namespace
}  // namespace tenon
