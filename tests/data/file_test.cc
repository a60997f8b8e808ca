// SPDX-License-Identifier: Apache-2.0
#include "data/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/data/sample_files.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(FileTest, WhatIsWrittenIsRead) {
  const TemporaryFolder folder;
  const std::string content("a\0b\n", 4);
  ASSERT_TRUE(WriteStringToFile(folder / "f", content).ok());
  EXPECT_EQ(*ReadFileToString(folder / "f"), content);
  EXPECT_EQ(*ReadFileToString("file://" + (folder / "f")), content);
  EXPECT_THAT(*ListFolder(folder.path()), ElementsAre("f"));
}

TEST(FileTest, AppendingKeepsWhatIsThere) {
  const TemporaryFolder folder;
  for (const char* part : {"one ", "two"}) {
    auto file = OpenOutput(folder / "f", WriteMode::kAppend);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Append(part).ok());
    ASSERT_TRUE((*file)->Close().ok());
  }
  EXPECT_EQ(*ReadFileToString(folder / "f"), "one two");
}

TEST(FileTest, FlushMakesDataVisible) {
  const TemporaryFolder folder;
  auto file = *OpenOutput(folder / "f");
  ASSERT_TRUE(file->Append("x").ok());
  ASSERT_TRUE(file->Flush().ok());
  EXPECT_EQ(*ReadFileToString(folder / "f"), "x");
  ASSERT_TRUE(file->Close().ok());
  EXPECT_EQ(file->Append("y").code(), StatusCode::kFailedPrecondition);
}

TEST(FileTest, ReadAtStopsAtTheEnd) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteStringToFile(folder / "f", "abcdef").ok());
  const auto file = *OpenInput(folder / "f");
  EXPECT_EQ(file->size(), 6);
  char out[8] = {};
  EXPECT_EQ(*file->ReadAt(4, 8, out), 2u);
  EXPECT_STREQ(out, "ef");
  EXPECT_EQ(*file->ReadAt(100, 8, out), 0u);
}

TEST(FileTest, ErrorsNameThePathAndTheReason) {
  const TemporaryFolder folder;
  const Status missing = ReadFileToString(folder / "none").status();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(missing)), HasSubstr("/none': No such file or directory"));
  EXPECT_EQ(ReadFileToString(folder.path()).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(WriteStringToFile(folder / "no/such/folder", "x").code(), StatusCode::kNotFound);
  EXPECT_EQ(ListFolder(folder / "none").status().code(), StatusCode::kNotFound);
}

TEST(FileTest, MakeFoldersMakesThoseAboveAndMayBeRepeated) {
  const TemporaryFolder folder;
  EXPECT_TRUE(MakeFolders(folder / "a/b/c").ok());
  EXPECT_TRUE(MakeFolders(folder / "a/b/c").ok());
  EXPECT_TRUE(FileExists(folder / "a/b/c"));
  ASSERT_TRUE(WriteStringToFile(folder / "f", "").ok());
  EXPECT_FALSE(MakeFolders(folder / "f/x").ok());
}

TEST(FileTest, AnUnknownSchemeIsRefused) {
  const Status status = ReadFileToString("s3://bucket/key").status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("no file system for s3://"));
  EXPECT_FALSE(FileExists("s3://bucket/key"));
}

TEST(FileTest, OnlyRegularFilesAreOpened) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const std::string& path : {folder / "pipe", std::string("/dev/zero")}) {
    const Status status = ReadFileToString(path).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(Message(status)), HasSubstr("not a regular file"));
    EXPECT_FALSE(OpenOutput(path).ok());
  }
}

TEST(FileTest, AFileLargerThanTheMemoryLimitIsRefusedBeforeItIsRead) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteStringToFile(folder / "sparse", "x").ok());
  ASSERT_EQ(truncate((folder / "sparse").c_str(), int64_t{1} << 42), 0);
  const Status status = ReadFileToString(folder / "sparse").status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("/sparse'"));
}

TEST(FileTest, ReadingEndsWhenItIsCancelled) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteStringToFile(folder / "f", "x").ok());
  Cancellation cancellation;
  cancellation.Cancel(Cancelled("enough"));
  FileContext context;
  context.cancellation = &cancellation;
  EXPECT_EQ(ReadFileToString(folder / "f", context).status().code(), StatusCode::kCancelled);
}

TEST(FileTest, PathsAreTakenApartAndJoined) {
  EXPECT_EQ(FolderOf("a/b/c"), "a/b");
  EXPECT_EQ(FolderOf("/c"), "/");
  EXPECT_EQ(FolderOf("c"), "");
  EXPECT_EQ(NameOf("a/b/c"), "c");
  EXPECT_EQ(NameOf("c"), "c");
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_NE(TemporaryName("a"), TemporaryName("a"));
}

}  // namespace
}  // namespace tenon
