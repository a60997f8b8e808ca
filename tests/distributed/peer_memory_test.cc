// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/peer/peer_memory.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <vector>

#include "distributed/protocol/server.h"
#include "gtest/gtest.h"
#include "ops/register.h"
#include "runtime/device/machine_clock.h"
#include "tests/testing/host_memory.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::IsError;

/// A process that stands still, with a copy of this one's memory at the same addresses.
class OtherProcess {
 public:
  OtherProcess() : pid_(fork()) {
    if (pid_ == 0) {
      while (true) pause();
    }
  }
  ~OtherProcess() { End(); }
  void End() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    pid_ = 0;
  }
  cluster::PeerMemoryPlace Place(const ShownMemory& shown) const {
    cluster::PeerMemoryPlace place = shown.place();
    place.set_process(pid_);
    return place;
  }

 private:
  pid_t pid_;
};

TEST(PeerMemoryTest, TheMemoryOfAnotherProcessIsCopied) {
  std::vector<int64_t> numbers(300000);
  std::iota(numbers.begin(), numbers.end(), 7);
  const std::string challenge = NewMemoryChallenge();
  const ShownMemory shown(challenge);
  OtherProcess other;
  const std::vector<int64_t> wanted = numbers;
  std::fill(numbers.begin(), numbers.end(), 0);  // here, and not there
  const auto memory = PeerMemory::Open(other.Place(shown), challenge);
  ASSERT_NE(memory, nullptr);
  std::vector<int64_t> found(wanted.size());
  EXPECT_TRUE(memory
                  ->Read(reinterpret_cast<uint64_t>(numbers.data()), found.data(),
                         found.size() * sizeof(int64_t))
                  .ok());
  EXPECT_EQ(found, wanted);
}

TEST(PeerMemoryTest, OnlyAProcessThatShowsTheChallengeIsRead) {
  const std::string challenge = NewMemoryChallenge();
  EXPECT_EQ(challenge.size(), 32u);
  EXPECT_NE(NewMemoryChallenge(), challenge);
  const ShownMemory shown(challenge);
  OtherProcess other;
  EXPECT_NE(PeerMemory::Open(other.Place(shown), challenge), nullptr);
  // Made after the fork: the other process does not have it.
  const std::string later = NewMemoryChallenge();
  const ShownMemory shown_later(later);
  EXPECT_EQ(PeerMemory::Open(other.Place(shown_later), later), nullptr);
  EXPECT_EQ(PeerMemory::Open(other.Place(shown), later), nullptr);
  for (const uint64_t address : {uint64_t{0}, uint64_t{1} << 62, ~uint64_t{0}}) {
    cluster::PeerMemoryPlace place = other.Place(shown);
    place.set_address(address);
    EXPECT_EQ(PeerMemory::Open(place, challenge), nullptr);
  }
  for (const int32_t process : {0, -1, INT32_MAX}) {
    cluster::PeerMemoryPlace place = other.Place(shown);
    place.set_process(process);
    EXPECT_EQ(PeerMemory::Open(place, challenge), nullptr);
  }
}

TEST(PeerMemoryTest, WhatIsNotThereIsAnError) {
  const std::string challenge = NewMemoryChallenge();
  const ShownMemory shown(challenge);
  OtherProcess other;
  const auto memory = PeerMemory::Open(other.Place(shown), challenge);
  ASSERT_NE(memory, nullptr);
  std::vector<char> room(1 << 20);
  EXPECT_THAT(memory->Read(0, room.data(), room.size()),
              IsError(StatusCode::kUnavailable, "cannot be read"));
  const uint64_t address = shown.place().address();
  EXPECT_TRUE(memory->Read(address, room.data(), 0).ok());
  other.End();
  EXPECT_THAT(memory->Read(address, room.data(), 8), IsError(StatusCode::kUnavailable, "process"));
}

/// Who frees what another process may be reading hides it before: a copy that was made too late, or
/// is still being made, is an error.
TEST(PeerMemoryTest, WhatIsHiddenIsAnErrorOfTheReader) {
  const std::string challenge = NewMemoryChallenge();
  ShownMemory shown(challenge);
  const auto memory = PeerMemory::Open(shown.place(), challenge);  // of this process
  ASSERT_NE(memory, nullptr);
  std::vector<char> bytes(64 << 20, 'a'), copy(bytes.size());
  const auto address = reinterpret_cast<uint64_t>(bytes.data());
  EXPECT_OK(memory->Read(address, copy.data(), copy.size()));
  for (int round = 0; round < 10; ++round) {
    ShownMemory hidden(challenge);
    const auto reader = PeerMemory::Open(hidden.place(), challenge);
    ASSERT_NE(reader, nullptr);
    std::fill(bytes.begin(), bytes.end(), 'a');
    std::jthread owner([&] {
      MachineClock().SleepFor(std::chrono::milliseconds(2 * round));
      hidden.Hide();
      std::fill(bytes.begin(), bytes.end(), 'b');
    });
    const Status read = reader->Read(address, copy.data(), copy.size());
    if (read.ok()) {
      EXPECT_EQ(std::count(copy.begin(), copy.end(), 'a'), std::ssize(copy));
    } else {
      EXPECT_THAT(read, IsError(StatusCode::kUnavailable, "does not show its memory any more"));
    }
  }
  EXPECT_OK(memory->Read(address, copy.data(), 8));
  shown.Hide();
  EXPECT_THAT(memory->Read(address, copy.data(), 8),
              IsError(StatusCode::kUnavailable, "does not show its memory any more"));
}

TEST(PeerMemoryTest, NotWhereConnectionsAreEncryptedNorWhereItIsOff) {
  const Credentials encrypted = {.tls_cert = "a", .tls_key = "b", .tls_ca = "c", .token = ""};
  const auto limit_by = [&](const char* value, const Credentials& credentials) {
    const testing::HostMemory variable(value);
    return HostMemoryLimit(credentials);
  };
  EXPECT_EQ(**limit_by(nullptr, {}), 16384u);
  EXPECT_EQ(**limit_by("0", {}), 0u);
  EXPECT_EQ(**limit_by("1048576", {}), 1048576u);
  EXPECT_EQ(*limit_by("off", {}), std::nullopt);
  EXPECT_EQ(*limit_by(nullptr, encrypted), std::nullopt);
  EXPECT_EQ(*limit_by("0", encrypted), std::nullopt);
  for (const char* const wrong : {"", "on", "-1", "16k", "99999999999999999999"}) {
    EXPECT_THAT(
        limit_by(wrong, {}).status(),
        IsError(StatusCode::kInvalidArgument, "TENON_HOST_MEMORY must be a number of bytes"))
        << wrong;
    const testing::HostMemory variable(wrong);
    EXPECT_THAT(Server::Start({.port = 0}, AllOps()).status(),
                IsError(StatusCode::kInvalidArgument, "or 'off', found '"));
  }
}

}  // namespace
}  // namespace tenon
