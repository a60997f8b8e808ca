// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/peer/local_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::IsError;

bool IsDone(const StatusOr<bool>& result) {
  EXPECT_OK(result);
  return result.ok() && *result;
}

class LocalSocketTest : public ::testing::Test {
 protected:
  LocalSocketTest() : LocalSocketTest(NewLocalSockets()) {}

  /// A message of as many parts as there are texts.
  static grpc::ByteBuffer MessageOf(const std::vector<std::string>& parts) {
    std::vector<grpc::Slice> slices(parts.begin(), parts.end());
    return {slices.data(), slices.size()};
  }
  /// Reads until nothing is there.
  void ReadAll() {
    StatusOr<bool> more = true;
    while (more.ok() && *more) {
      more = to_->Read([&](std::string_view message) {
        came_.emplace_back(message);
        return OkStatus();
      });
    }
    EXPECT_OK(more);
  }

  std::unique_ptr<LocalSocket> from_, to_;
  std::vector<std::string> came_;

 private:
  explicit LocalSocketTest(std::pair<OwnedFile, OwnedFile> ends)
      : from_(std::make_unique<LocalSocket>(std::move(ends.first))),
        to_(std::make_unique<LocalSocket>(std::move(ends.second))) {}
};

TEST_F(LocalSocketTest, MessagesComeInTheirOrderAndWhole) {
  std::vector<std::string> sent;
  for (size_t size : {0, 1, 3, 4, 5, 1000, 60000}) {
    sent.emplace_back(size, static_cast<char>('a' + size % 26));
    const grpc::ByteBuffer message = MessageOf({sent.back()});
    ASSERT_TRUE(IsDone(from_->Write(&message)));
  }
  ReadAll();
  EXPECT_EQ(came_, sent);
}

TEST_F(LocalSocketTest, AMessageOfManyPartsIsOne) {
  std::vector<std::string> parts;
  std::string all;
  for (int i = 0; i < 200; ++i) {
    parts.emplace_back(i % 7, static_cast<char>('a' + i % 26));
    all += parts.back();
  }
  const grpc::ByteBuffer message = MessageOf(parts);
  ASSERT_TRUE(IsDone(from_->Write(&message)));
  ReadAll();
  EXPECT_THAT(came_, ::testing::ElementsAre(all));
}

TEST_F(LocalSocketTest, WhatDoesNotFitIsWrittenWhenTheOtherEndHasRead) {
  std::vector<std::string> parts;
  std::string all;
  for (int i = 0; i < 50; ++i) {
    parts.emplace_back(100000 + i, static_cast<char>('a' + i % 26));
    all += parts.back();
  }
  const grpc::ByteBuffer message = MessageOf(parts), end = MessageOf({"end"});
  StatusOr<bool> written = from_->Write(&message);
  int times = 0;
  for (; written.ok() && !*written; ++times) {
    ReadAll();
    written = from_->Write(nullptr);
  }
  ASSERT_OK(written);
  EXPECT_GT(times, 1);
  ASSERT_TRUE(IsDone(from_->Write(&end)));
  ReadAll();
  EXPECT_THAT(came_, ::testing::ElementsAre(all, "end"));
}

TEST_F(LocalSocketTest, AnEndThatIsGoneIsAnErrorAfterWhatItHasWritten) {
  const grpc::ByteBuffer message = MessageOf({"last"});
  ASSERT_TRUE(IsDone(from_->Write(&message)));
  from_.reset();
  const auto receive = [&](std::string_view text) {
    came_.emplace_back(text);
    return OkStatus();
  };
  EXPECT_TRUE(IsDone(to_->Read(receive)));
  EXPECT_THAT(came_, ::testing::ElementsAre("last"));
  EXPECT_THAT(to_->Read(receive), IsError(StatusCode::kUnavailable, "has ended"));
  EXPECT_THAT(to_->Write(&message), IsError(StatusCode::kUnavailable, "has ended"));
}

TEST_F(LocalSocketTest, ALengthThatNoMessageHasIsAnError) {
  ASSERT_EQ(send(from_->number(), "\xff\xff\xff\xff", 4, 0), 4);
  EXPECT_THAT(to_->Read([](std::string_view) { return OkStatus(); }),
              IsError(StatusCode::kInvalidArgument, "a message of 4294967295 bytes is announced"));
}

TEST_F(LocalSocketTest, WhoHasDescribedAnotherSocketDoesNotHaveThisOne) {
  auto [one, other] = NewLocalSockets();
  EXPECT_TRUE(IsSocket(one, DescribeSocket(one)));
  EXPECT_FALSE(IsSocket(one, DescribeSocket(other)));
  EXPECT_FALSE(IsSocket(OwnedFile(), DescribeSocket(one)));
}

}  // namespace
}  // namespace tenon
