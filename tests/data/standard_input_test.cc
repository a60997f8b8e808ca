// SPDX-License-Identifier: Apache-2.0
#include "data/files/standard_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "tests/data/sample_files.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Has $TMPDIR be another folder while it lives.
class TemporaryPlaceIs {
 public:
  explicit TemporaryPlaceIs(const std::string& folder) {
    if (const char* const before = std::getenv("TMPDIR")) before_ = before;
    setenv("TMPDIR", folder.c_str(), 1);
  }
  ~TemporaryPlaceIs() {
    before_.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", before_.c_str(), 1);
  }

 private:
  std::string before_;
};

TEST(KeptBytesTest, WhatComesThroughAPipeIsReadAtAnyPlace) {
  const TemporaryFolder folder;
  const TemporaryPlaceIs place(folder.path());
  const std::string content = std::string(3 << 20, 'a') + "end";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::thread writer([&] {
    for (size_t done = 0; done < content.size();) {
      done += write(ends[1], content.data() + done, content.size() - done);
    }
    close(ends[1]);
  });
  const auto kept = KeptBytes::Read(ends[0]);
  writer.join();
  close(ends[0]);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ((*kept)->size(), static_cast<int64_t>(content.size()));
  for (int time = 0; time < 2; ++time) {
    const auto file = (*kept)->Open().value();
    std::string read(content.size() + 10, ' ');
    EXPECT_EQ(file->ReadAt(0, read.size(), read.data()).value(), content.size());
    read.resize(content.size());
    EXPECT_TRUE(read == content);
    EXPECT_EQ(file->ReadAt(3 << 20, 10, read.data()).value(), 3u);
    EXPECT_EQ(read.substr(0, 3), "end");
  }
  EXPECT_THAT(ListFolder(folder.path()).value(), IsEmpty());
}

TEST(KeptBytesTest, WhereNothingCanBeWrittenIsSaid) {
  const TemporaryFolder folder;
  const TemporaryPlaceIs place(folder / "none");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Status status = KeptBytes::Read(ends[0]).status();
  EXPECT_THAT(Message(status), HasSubstr("the standard input cannot be kept to be read again"));
  EXPECT_THAT(Message(status), HasSubstr(folder / "none"));
  close(ends[0]);
  close(ends[1]);
}

TEST(KeptBytesTest, WhoWaitsForBytesIsCancelled) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Cancellation cancellation;
  FileContext context;
  context.cancellation = &cancellation;
  std::thread stopper([&] { cancellation.Cancel(Cancelled("enough")); });
  EXPECT_EQ(KeptBytes::Read(ends[0], context).status().code(), StatusCode::kCancelled);
  stopper.join();
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace tenon
