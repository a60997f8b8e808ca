// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <functional>
#include <numeric>
#include <string_view>
#include <vector>

#include "tests/distributed/peer_caller.h"
#include "tests/testing/host_memory.h"

namespace tenon {
namespace {

using testing::Caller;
using testing::Challenge;
using testing::Giver;
using testing::Neighbour;
using testing::ReadsMemory;

TEST(PeerSocketTest, CallsAndAnswersMoveToTheSocketThatWasTaken) {
  const testing::HostMemory usual(nullptr);
  Tensor value(DType::kInt64, {300});
  std::iota(value.data<int64_t>(), value.data<int64_t>() + 300, 5);
  Giver giver(value);
  Neighbour neighbour(giver.address());
  EXPECT_TRUE(giver.Give(neighbour.caller).tensor.Equals(value));
  OwnedFile socket = neighbour.TakeSocket();
  ASSERT_TRUE(socket.valid());
  neighbour.caller.MoveTo(std::move(socket));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(giver.Give(neighbour.caller).tensor.Equals(value));
  }
}

/// More than a socket holds at once, since it is sent and not left in memory.
TEST(PeerSocketTest, TensorsThatASocketDoesNotHoldComeInPieces) {
  const testing::HostMemory usual(nullptr);
  Tensor value(DType::kInt64, {3 << 20});
  std::iota(value.data<int64_t>(), value.data<int64_t>() + value.num_elements(), 5);
  Giver giver(value);
  Neighbour neighbour(giver.address());
  neighbour.caller.MoveTo(neighbour.TakeSocket());
  neighbour.caller.Send(ReadsMemory(false));
  for (int i = 0; i < 3; ++i) {
    const Caller::Came came = giver.Give(neighbour.caller);
    EXPECT_FALSE(came.place);
    EXPECT_TRUE(came.tensor.Equals(value));
  }
}

TEST(PeerSocketTest, AStreamWhoseSocketCannotBeTakenGoesOn) {
  const testing::HostMemory usual(nullptr);
  const Tensor value = Tensor::Scalar(2.5f);
  Giver giver(value);
  Neighbour neighbour(giver.address());
  cluster::PeerSocket socket = neighbour.caller.Offered();
  socket.set_inode(socket.inode() + 1);  // of a file that has the number of one that is closed
  EXPECT_FALSE(neighbour.memory->TakeSocket(socket).valid());
  socket.set_number(1 << 20);
  EXPECT_FALSE(neighbour.memory->TakeSocket(socket).valid());
  cluster::PeerFrame not_moved;
  not_moved.set_moved(false);
  neighbour.caller.Send(not_moved);
  EXPECT_TRUE(giver.Give(neighbour.caller).tensor.Equals(value));
  // A socket that has been refused cannot be moved to later.
  not_moved.set_moved(true);
  neighbour.caller.Send(not_moved);
  EXPECT_TRUE(neighbour.caller.Ends());
}

/// Whoever cannot read the server's memory has no descriptor of its.
TEST(PeerSocketTest, NobodyMovesWhoWasOfferedNothing) {
  const testing::HostMemory usual(nullptr);
  Giver giver(Tensor::Scalar(2.5f));
  Caller caller(giver.address());
  cluster::PeerFrame proof;
  for (int i = 0; i < 2; ++i) {
    for (const size_t size : {0, 31, 32, 64}) {
      proof.set_memory_proof(std::string(size, 'a'));
      caller.Send(proof);
    }
    if (i == 1) break;
    caller.Send(Challenge(NewMemoryChallenge()));
    EXPECT_TRUE(caller.Next().has_memory_place());
    caller.Send(ReadsMemory());
  }
  EXPECT_TRUE(giver.Give(caller).tensor.valid());
  EXPECT_FALSE(caller.was_offered());
  cluster::PeerFrame moved;
  moved.set_moved(true);
  caller.Send(moved);
  EXPECT_TRUE(caller.Ends());
}

TEST(PeerSocketTest, AStreamThatHasMovedGetsNoMoreMessages) {
  const testing::HostMemory usual(nullptr);
  Giver giver(Tensor::Scalar(2.5f));
  Neighbour neighbour(giver.address());
  neighbour.caller.MoveTo(neighbour.TakeSocket());
  EXPECT_TRUE(giver.Give(neighbour.caller).tensor.valid());
  neighbour.caller.SendOnStream(ReadsMemory());
  EXPECT_TRUE(neighbour.caller.Ends());
}

/// How a caller may treat its socket, after which the server ends the stream.
TEST(PeerSocketTest, ASocketThatIsAbusedEndsTheStream) {
  const testing::HostMemory usual(nullptr);
  Giver giver(Tensor::Scalar(2.5f));
  const auto write = [](int socket, std::string_view bytes) {
    EXPECT_EQ(send(socket, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  };
  const std::vector<std::function<void(int socket)>> abuses = {
      [](int socket) { shutdown(socket, SHUT_RDWR); },
      [&](int socket) { write(socket, "\xff\xff\xff\xff and no such message"); },
      [&](int socket) { write(socket, std::string_view("\4\0\0\0none", 8)); },
      [&](int socket) {  // the first part of a message
        write(socket, std::string_view("\4\0\0\0no", 6));
        shutdown(socket, SHUT_WR);
      }};
  for (const auto& abuse : abuses) {
    Neighbour neighbour(giver.address());
    neighbour.caller.MoveTo(neighbour.TakeSocket());
    EXPECT_TRUE(giver.Give(neighbour.caller).tensor.valid());
    abuse(neighbour.caller.socket()->number());
    EXPECT_TRUE(neighbour.caller.Ends());
  }
}

}  // namespace
}  // namespace tenon
